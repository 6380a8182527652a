"""What the ledger is to do, in plain dictionaries: the model beside which the store is tried.

Only `transitions.settle` is shared with it, which is a pure function with tests of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from runyard.end_causes import cause_of_exit
from runyard.server.sweeps.policy import lifecycle

OPEN = ("running", "paused")


@dataclass
class Trial:
    number: int
    setting: int
    state: str = "waiting"
    agent: int = 0
    attempt: int = 0
    began: float = 0.0
    stop: str | None = None
    tries: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    # Rows when it was last cut off.
    steps: int = 0
    # When each attempt began, and how long those were that are over; whose ends were told.
    begins: dict[int, float] = field(default_factory=dict)
    spans: dict[int, float] = field(default_factory=dict)
    told: set[int] = field(default_factory=set)
    # The newest client's attempt, and its last words: the exit code, and when.
    client: int = 0
    last_words: tuple[int, float] | None = None
    # Tries and steps before its lease ran out, for who comes back in time.
    lost: tuple[dict[str, int], int] | None = None

    @property
    def seconds(self) -> float:
        return sum(self.spans.values())


class Model:
    """One sweep over a grid. The caller says when; nothing here knows of a clock."""

    def __init__(self, points: int, retries: Mapping[str, int]) -> None:
        self.points, self.retries = points, retries
        self.state = "running"
        self.trials: dict[int, Trial] = {}
        self.drawn = 0
        # Who waits, in their order: those that were cut off, then the others.
        self.head: list[int] = []
        self.tail: list[int] = []
        self.tokens: dict[str, tuple[int, int]] = {}

    @property
    def waiting(self) -> list[int]:
        return [*self.head, *self.tail]

    def claim(self, token: str | None) -> tuple[int, bool]:
        """The number of the trial that a claim gets, 0 for none; and whether it had it before."""
        if token in self.tokens:
            number, attempt = self.tokens[token]
            trial = self.trials[number]
            is_held = trial.state == "running" and trial.attempt == attempt
            return (number if is_held else 0), True
        if self.state != "running":
            return 0, False
        if self.waiting:
            return self.waiting[0], False
        return (len(self.trials) + 1 if self.drawn < self.points else 0), False

    def take(self, number: int, agent: int, attempt: int, token: str | None, now: float) -> None:
        if number not in self.trials:
            self.trials[number] = Trial(number, self.drawn)
            self.drawn += 1
        trial = self.trials[number]
        self.leave_queue(trial)
        trial.state, trial.agent, trial.attempt, trial.began = "running", agent, attempt, now
        trial.begins[attempt], trial.lost, trial.last_words = now, None, None
        if token is not None:
            self.tokens[token] = (number, attempt)

    def hear(self, trial: Trial) -> None:
        """Who has the trial is heard: one that was given up is running after all."""
        if trial.lost is None:
            return
        trial.tries, trial.steps = trial.lost
        trial.lost = None
        del trial.spans[trial.attempt]
        self.leave_queue(trial)
        trial.state = "running"

    def end(self, trial: Trial, attempt: int, code: int, cause: str | None, end: float) -> None:
        """An agent of ours tells of an end; of one that counts no more, how long it was."""
        if attempt in trial.told:
            return
        trial.told.add(attempt)
        if attempt == trial.attempt and (trial.state == "running" or trial.lost is not None):
            self.hear(trial)
            self.settle(trial, cause or cause_of_exit(code), end)
        else:
            trial.spans[attempt] = max(0.0, end - trial.begins[attempt])

    def lose(self, trial: Trial, now: float) -> None:
        if trial.last_words is not None:
            code, at = trial.last_words
            self.settle(trial, cause_of_exit(code), min(at, now))
        else:
            self.settle(trial, "node", now, is_lost=True)

    def settle(self, trial: Trial, cause: str, end: float, *, is_lost: bool = False) -> None:
        if trial.stop == "canceled" and self.state in OPEN:
            trial.stop, cause = None, "go-on"  # Its sweep was resumed before it had ended.
        outcome = lifecycle.settle(
            cause,
            stop=trial.stop,
            tries=trial.tries,
            progressed=trial.rows > trial.steps,
            retries=self.retries,
        )
        before = (trial.tries, trial.steps)
        trial.lost = before if is_lost and trial.stop is None else None
        trial.tries, trial.steps = dict(outcome.tries), max(trial.rows, trial.steps)
        trial.spans[trial.attempt] = max(0.0, end - trial.began)
        trial.stop = None
        trial.state = outcome.state
        if trial.state == "waiting" and self.state not in OPEN:
            trial.state = "canceled"
        elif trial.state == "waiting":
            (self.head if outcome.queue == "head" else self.tail).append(trial.number)
        self.conclude()

    def hand_back(self, trial: Trial) -> None:
        del trial.begins[trial.attempt]
        trial.state, trial.attempt = "waiting", 0
        self.head.append(trial.number)

    def drop(self, trial: Trial, state: str) -> None:
        self.leave_queue(trial)
        trial.state, trial.lost = state, None

    def stop(self, trial: Trial) -> None:
        if trial.state == "running":
            trial.stop = trial.stop or "stopped"
        elif trial.state == "waiting":
            self.drop(trial, "stopped")
            self.conclude()

    def delete(self, trial: Trial) -> None:
        """Its point of the grid is to be had again."""
        self.drop(trial, "deleted")
        trial.stop = None
        number = len(self.trials) + 1
        self.trials[number] = Trial(number, trial.setting)
        self.tail.append(number)
        self.tokens = {
            token: place for token, place in self.tokens.items() if place[0] != trial.number
        }

    def steer(self, state: str) -> None:
        if state == self.state or (state == "paused" and self.state != "running"):
            return
        if state == "running" and self.state not in OPEN:
            self.bring_back("canceled")
        self.state = state
        if state not in OPEN:
            for number in self.waiting:
                self.drop(self.trials[number], "canceled")
        if state == "canceled":
            for trial in self.trials.values():
                trial.stop = "canceled" if trial.state == "running" else None
        self.conclude()

    def retry(self) -> None:
        if self.bring_back("failed") and self.state not in OPEN:
            self.bring_back("canceled")
            self.state = "running"

    def bring_back(self, state: str) -> int:
        back = [trial for trial in self.trials.values() if trial.state == state]
        for trial in back:
            trial.state, trial.tries, trial.lost = "waiting", {}, None
            self.tail.append(trial.number)
        return len(back)

    def conclude(self) -> None:
        at_work = any(trial.state == "running" for trial in self.trials.values())
        if self.state in OPEN and not (self.waiting or at_work or self.drawn < self.points):
            self.state = "finished"

    def leave_queue(self, trial: Trial) -> None:
        for queue in (self.head, self.tail):
            if trial.number in queue:
                queue.remove(trial.number)
