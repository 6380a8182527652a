"""How long a whole run takes, told when a tenth of it is over."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from runyard import train
from runyard.gauge.measured import estimate_range
from runyard.gauge.steps import Mark, Steps
from runyard.train import loop, pace, progress_file
from runyard.train.pace import Pace
from tests.conftest import RunRunyard
from tests.train.frameworks import ROOT, ensure_framework, program_environment

STEPS = 200


def usual(step: int) -> float:
    return 1.0


def slow_at_first(step: int) -> float:
    """The first period of five steps takes ten times as long."""
    return 10.0 if step < 5 else 1.0


def with_evaluations(step: int) -> float:
    return 8.0 if step % 5 == 4 else 1.0


def uneven(step: int) -> float:
    return (0.6, 1.5, 0.9, 1.2, 0.8)[step * 7 % 5]


def compiles(step: int) -> float:
    return 60.0 if step == 0 else 0.5


def marks_of(steps: int, cost: object, every: int) -> list[Mark]:
    """What a program with such steps notes, and when, on a clock that costs nobody time."""
    assert callable(cost)
    now, found = 0.0, []
    for step in range(steps):
        now += cost(step)
        if (step + 1) % every == 0:
            found.append((step + 1, now))
    return found


def estimate_whole(*args: Any, **more: Any) -> float | None:
    whole = estimate_range(*args, **more)
    return None if whole is None else whole[0]


@pytest.mark.parametrize("every", [1, 5])
@pytest.mark.parametrize("cost", [usual, slow_at_first, with_evaluations, uneven, compiles])
def test_after_a_tenth_the_end_is_known_to_a_tenth(cost: object, every: int) -> None:
    whole = marks_of(STEPS, cost, every)
    truth = whole[-1][1]
    seen = [mark for mark in whole if mark[0] <= STEPS // 10]
    told = estimate_whole(seen, STEPS, began=0.0, now=seen[-1][1])
    assert told is not None
    assert told / truth == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("cost", [usual, slow_at_first, with_evaluations, uneven])
def test_the_program_itself_knows_it_too(cost: object) -> None:
    """As `runyard.train` tells it while the run goes on."""
    own = Pace()
    marks = marks_of(STEPS, cost, 1)
    for step, now in marks[: STEPS // 10]:
        own.mark(step, now)
    elapsed = marks[STEPS // 10 - 1][1]
    left = own.seconds_left(STEPS // 10, STEPS)
    assert left is not None
    assert (elapsed + left) / marks[-1][1] == pytest.approx(1, abs=0.1)


def test_a_long_run_keeps_few_marks_and_a_true_pace() -> None:
    own = Pace()
    for step, now in marks_of(20_000, with_evaluations, 1):
        own.mark(step, now)
    assert len(own._marks) <= 130
    assert own.seconds_left(0, 100) == pytest.approx(100 * (4 + 8) / 5, rel=0.05)


def slower_as_it_learns(step: int) -> float:
    """As an adaptive solver whose equation gets stiffer."""
    return 1.0 + 2.0 * (step / STEPS) ** 2


def in_two_phases(step: int) -> float:
    """Another compilation, and then every step is dearer."""
    return 1.0 if step < STEPS // 2 else 60.0 if step == STEPS // 2 else 4.0


PHASES = [(STEPS // 2, 0.25), (STEPS // 2, 1.0)]


def told_after_a_tenth(
    cost: Callable[[int], float], phases: Sequence[tuple[int, float]] = ()
) -> float:
    """What a program says of its whole run when a tenth is over, against the truth; the run then
    goes on to its end."""
    pace, told = Pace(phases), None
    marks = marks_of(STEPS, cost, 1)
    for step, now in marks:
        pace.mark(step, now)
        pace.tell(step, STEPS, now)
        if step == STEPS // 10:
            left = pace.seconds_left(step, STEPS)
            assert left is not None
            told = now + left
    assert told is not None
    return told / marks[-1][1]


def test_phases_that_the_program_names_are_counted_as_what_they_cost() -> None:
    def cost(step: int) -> float:
        return 1.0 if step < STEPS // 2 else 4.0

    assert told_after_a_tenth(cost) < 0.5
    assert told_after_a_tenth(cost, PHASES) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(
    "cost", [usual, slow_at_first, with_evaluations, uneven, slower_as_it_learns, in_two_phases]
)
def test_the_next_run_knows_how_the_last_one_went(
    cost: Callable[[int], float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNYARD_COURSES", str(tmp_path / "courses"))
    first = told_after_a_tenth(cost)
    assert told_after_a_tenth(cost) == pytest.approx(1, abs=0.1)
    # On a machine of half the speed it is the same course; what came once is as long as it was.
    slow = told_after_a_tenth(lambda step: 2 * cost(step))
    assert slow == pytest.approx(1, abs=0.1)
    if cost in (slower_as_it_learns, in_two_phases):
        assert first < 0.8  # Nobody could know.


def test_a_course_of_other_phases_or_another_length_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNYARD_COURSES", str(tmp_path))
    told_after_a_tenth(in_two_phases)
    other = [(STEPS // 2, 1.0), (STEPS // 2, 1.0)]
    assert told_after_a_tenth(usual, other) == pytest.approx(1, abs=0.02)
    pace = Pace()
    for step, now in marks_of(STEPS // 5, usual, 1):
        pace.mark(step, now)
    assert pace.seconds_left(STEPS // 5, 10 * STEPS) == pytest.approx(10 * STEPS - STEPS // 5)


def test_of_earlier_runs_the_one_with_the_likest_command_line_is_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNYARD_COURSES", str(tmp_path))
    for words, cost in (
        ("--algo=slow --seed=1", slower_as_it_learns),
        ("--algo=even --seed=2", usual),
    ):
        monkeypatch.setattr(sys, "argv", ["train.py", *words.split()])
        told_after_a_tenth(cost)
    monkeypatch.setattr(sys, "argv", ["train.py", "--algo=slow", "--seed=3"])
    assert told_after_a_tenth(slower_as_it_learns) == pytest.approx(1, abs=0.05)
    (file,) = tmp_path.iterdir()
    assert "algo" not in file.read_text()


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"pieces": ["a"]}]', "null", "\x00"])
def test_a_damaged_course_is_none(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNYARD_COURSES", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["train.py"])
    (tmp_path / f"train-py-{STEPS}.json").write_text(text)
    assert told_after_a_tenth(usual) == pytest.approx(1, abs=0.02)


def test_a_folder_that_cannot_be_written_spoils_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("RUNYARD_COURSES", str(tmp_path / "file" / "courses"))
    assert told_after_a_tenth(usual) == pytest.approx(1, abs=0.02)


def test_a_run_that_went_on_from_a_checkpoint_is_no_course(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNYARD_COURSES", str(tmp_path / "courses"))
    pace = Pace()
    for step in range(STEPS // 2, STEPS + 1):
        pace.mark(step, float(step))
        pace.tell(step, STEPS, float(step))
    assert not (tmp_path / "courses").exists()


def test_without_a_total_nothing_is_made_up() -> None:
    assert estimate_whole([(1, 1.0), (2, 2.0)], None, began=0.0, now=2.0) is None
    assert estimate_whole([(1, 1.0)], 10, began=0.0, now=1.0) is None


class Clock:
    """Time that only passes when a program says so."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def time(self) -> float:
        return self.now

    monotonic = time


def test_a_loop_whose_first_period_is_ten_times_slower_told_by_the_file_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The real loop and the real file, as `runyard gauge` reads it; only the clock is made up."""
    clock = Clock()
    for module in (pace, progress_file, loop):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setenv("RUNYARD_PROGRESS_FILE", str(tmp_path / "progress"))
    began = clock.now
    steps, told = Steps(tmp_path), None
    for step in train.steps(0, 100):
        clock.now += slow_at_first(step)
        if step == 10:  # Ten are over.
            steps.look()
            told = estimate_whole(steps.marks, steps.total, began=began, now=clock.now)
    assert told is not None
    assert told / (clock.now - began) == pytest.approx(1, abs=0.1)
    assert "step 100 of 100" in capsys.readouterr().out


ALL = pytest.mark.skipif(
    not os.environ.get("RUNYARD_ALL_EXAMPLES"),
    reason="RUNYARD_ALL_EXAMPLES=1: they train for minutes",
)


@ALL
@pytest.mark.frameworks
@pytest.mark.parametrize("example", ["cnn_regressor", "neural_ode", "slow_at_first"])
def test_the_examples_are_known_to_a_tenth_after_a_tenth(
    example: str, tmp_path: Path, runyard: RunRunyard
) -> None:
    """Each in its first run; the neural equation as it is shipped, with both phases."""
    words = _command_of(example, tmp_path, runyard)
    assert _ratio(example, words, tmp_path, runyard) == pytest.approx(1, abs=0.1)


@ALL
@pytest.mark.frameworks
def test_a_run_that_gets_slower_as_it_learns_is_known_the_second_time(
    tmp_path: Path, runyard: RunRunyard
) -> None:
    """On whole series from the start, the solver takes five times the steps in the end; the second
    run has another seed."""
    words = _command_of("neural_ode", tmp_path, runyard)
    words += [
        "--steps_strategy=[2000]", "--length_strategy=[1]", "--lr_strategy=[3e-3]",
        "--width_size=16", "--batch_size=16",
    ]  # fmt: skip
    _ratio("the first run", words, tmp_path / "first", runyard)
    again = _ratio("the second run", [*words, "--seed=7"], tmp_path / "second", runyard)
    assert again == pytest.approx(1, abs=0.1)


def _ratio(name: str, words: list[str], folder: Path, runyard: RunRunyard) -> float:
    """What is told when a tenth of the steps is done, against the truth."""
    folder.mkdir(exist_ok=True)
    environ = program_environment(
        RUNYARD_PROGRESS_FILE=str(folder / "progress"),
        RUNYARD_CHECKPOINT_DIR=str(folder / "checkpoints"),
        CLOCK="wall" if name == "slow_at_first" else "cpu",
        WHOLE=str(folder / "whole"),
    )
    # The project that the neural equation names itself.
    done = runyard("run", "-P", "neural-ode", "--", *words, env=environ, cwd=folder, timeout=3600)
    assert done.returncode == 0, done.stderr
    truth = float((folder / "whole").read_text())
    lines = (folder / "progress").read_text().splitlines(keepends=True)
    (folder / "a tenth").mkdir()
    (folder / "a tenth" / "progress").write_text(
        "".join(line for line in lines if int(line.split()[0]) <= int(line.split()[1]) / 10)
    )
    steps = Steps(folder / "a tenth")
    steps.look()
    (over, now), left = steps.marks[-1], steps.left
    told = estimate_whole(steps.marks, steps.total, began=0.0, now=now, left=left)
    assert told is not None
    print(
        f"{name}: after {over} of {steps.total} steps {told:.1f} s, in truth {truth:.1f} s: "
        f"{told / truth:.3f}; of what was left {(told - now) / (truth - now):.3f}"
    )
    return told / truth


# Runs a program with the clock of its own CPU time: what others do on this machine meanwhile is
# not the estimate's to know. A program that sleeps has the usual clock.
CLOCKED = """\
import atexit, os, runpy, sys, time, types
from runyard.train import loop, pace, progress_file
began = time.time()
clock = time.process_time if os.environ["CLOCK"] == "cpu" else lambda: time.time() - began
for module in (loop, pace, progress_file):
    module.time = types.SimpleNamespace(time=clock, monotonic=clock)
atexit.register(lambda: open(os.environ["WHOLE"], "w").write(str(clock())))
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""
SLOW_AT_FIRST = """\
import time
from runyard import train
for step in train.steps(0, 100):
    time.sleep(2.0 if step < 5 else 0.2)
"""


def _command_of(example: str, folder: Path, runyard: RunRunyard) -> list[str]:
    clocked = folder / "clocked.py"
    clocked.write_text(CLOCKED)
    if example == "slow_at_first":
        (folder / "train.py").write_text(SLOW_AT_FIRST)
        return [sys.executable, str(clocked), str(folder / "train.py")]
    if example == "cnn_regressor":
        program = ROOT / "examples" / example / "train.py"
        return [
            str(ensure_framework("torch")), str(clocked), str(program), "--config=laptop",
            "--max_epochs=100",
            "--num_samples=256", f"--root_dir={folder}", "--log_to_wandb=False",
        ]  # fmt: skip
    python, program = ensure_framework("jax"), ROOT / "examples" / example / "neural_ode.py"
    made = runyard(
        "run", "-P", "neural-ode", "--", str(python), str(program), "make-data",
        env=program_environment(), cwd=folder, timeout=600,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return [str(python), str(clocked), str(program), "train-model"]
