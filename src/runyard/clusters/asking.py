"""Commands of a site, asked with a limit: what they say, or why they say nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

# A busy controller answers within seconds, or not while anybody waits.
USUAL_SECONDS = 15.0


@dataclass(frozen=True)
class Answer:
    """What a command printed; `trouble` says why that is not what was asked for."""

    text: str = ""
    trouble: str | None = None
    is_missing: bool = False

    @property
    def ok(self) -> bool:
        return self.trouble is None


class Ask(Protocol):
    """Runs a command. Tests answer from what other releases of Slurm were seen to print."""

    def __call__(self, *words: str, seconds: float = USUAL_SECONDS) -> Answer: ...


def asker(environ: Mapping[str, str]) -> Ask:
    """Asks for real, in an environment."""

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


def _last_words(name: str, done: subprocess.CompletedProcess[str]) -> str:
    said = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return said[-1] if said else f"{name} ended with exit code {done.returncode}"
