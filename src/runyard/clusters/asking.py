"""Runs commands of a site with a time limit: their output, or why there is none."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

# A busy controller answers within seconds, or so late that nobody would wait.
USUAL_SECONDS = 15.0


@dataclass(frozen=True)
class Answer:
    """The output of a command; `trouble` says why it cannot be used."""

    text: str = ""
    trouble: str | None = None
    is_missing: bool = False


class Ask(Protocol):
    """Runs a command. Tests answer with recorded output of other releases of Slurm."""

    def __call__(self, *words: str, seconds: float = USUAL_SECONDS) -> Answer: ...


def asker(environ: Mapping[str, str]) -> Ask:
    """Runs the real command, in an environment."""

    def ask(*words: str, seconds: float = USUAL_SECONDS) -> Answer:
        try:
            done = subprocess.run(
                words,
                capture_output=True, text=True, errors="replace", timeout=seconds, check=False,
                stdin=subprocess.DEVNULL, env={**environ, "LC_ALL": "C"}, start_new_session=True,
            )  # fmt: skip
        except FileNotFoundError:
            return Answer(trouble=f"{words[0]} is not on the path", is_missing=True)
        except subprocess.TimeoutExpired:
            return Answer(trouble=f"{words[0]} said nothing for {seconds:g} s")
        except OSError as error:
            return Answer(trouble=f"{words[0]}: {error.strerror}")
        if done.returncode:
            return Answer(done.stdout, _last_words(words[0], done))
        return Answer(done.stdout)

    return ask


def recording(ask: Ask, asked: list[tuple[tuple[str, ...], Answer]]) -> Ask:
    """The same, and what was asked and answered goes into the list."""

    def ask_and_note(*words: str, seconds: float = USUAL_SECONDS) -> Answer:
        answer = ask(*words, seconds=seconds)
        asked.append((words, answer))
        return answer

    return ask_and_note


def _last_words(name: str, done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return lines[-1] if lines else f"{name} ended with exit code {done.returncode}"
