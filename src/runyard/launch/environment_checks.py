"""Looks before a submission whether an environment is there: a job that fails in its first second
after a night in the queue is what this is against."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from runyard.errors import ConfigError
from runyard.launch.environments import Check

_SECONDS = 60.0
_SECONDS_INSIDE = 30.0
_WORKS = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
_HAS_WANDB = "import importlib.util as u, sys; sys.exit(u.find_spec('wandb') is None)"


# Said by the image's own shell: whatever else comes, or nothing, means that nobody could look.
_LOOK_INSIDE = f"""\
python="$(command -v python3 || command -v python)" || exit 0
"$python" -I -c "{_HAS_WANDB}" || echo runyard: no wandb
"""


@dataclass(frozen=True)
class Seen:
    """What a look showed: fine, or what is missing and the words of whoever said so."""

    check: Check
    is_fine: bool
    detail: str | None = None


def look(checks: Iterable[Check]) -> list[Seen]:
    """Every check, in its order; after one that fails, those that build on it are left out."""
    seen: list[Seen] = []
    for check in checks:
        if check.kind in ("python", "wandb", "wandb-inside") and any(
            not answer.is_fine for answer in seen
        ):
            continue
        seen.append(_LOOKS[check.kind](check))
    return seen


def demand(checks: Iterable[Check], say: Callable[[str], None]) -> None:
    """ConfigError for the first that is missing; advice is said."""
    for answer in look(checks):
        if answer.is_fine:
            continue
        if answer.check.is_advice:
            where = "image" if answer.check.kind == "wandb-inside" else "environment"
            say(f"{answer.check.what} is not in the {where}; {answer.check.mend}")
            continue
        raise ConfigError(
            f"{answer.check.what} is not there; nothing was submitted",
            said=answer.detail,
            mend=answer.check.mend,
        )


def _file(check: Check) -> Seen:
    path = Path(check.subject)
    return Seen(check, path.is_file() and os.access(path, os.R_OK))


def _folder(check: Check) -> Seen:
    return Seen(check, Path(check.subject).is_dir())


def _image(check: Check) -> Seen:
    """A file, or the folder of an unpacked image; not an empty one, and not a broken copy."""
    path = Path(check.subject)
    try:
        if path.is_dir():
            return Seen(check, any(path.iterdir()))
        size = path.stat().st_size
    except OSError as error:
        return Seen(check, False, error.strerror)
    readable = os.access(path, os.R_OK)
    trouble = "it is empty" if not size else None if readable else "you may not read it"
    return Seen(check, bool(size) and readable, trouble)


def _program(check: Check) -> Seen:
    programs = [shutil.which(name) for name in check.subject.split("|")]
    return Seen(check, any(programs), None if any(programs) else "not on the path")


def _python(check: Check) -> Seen:
    code, words = _ask(check.subject, _WORKS)
    return Seen(check, code == 0, words)


def _wandb(check: Check) -> Seen:
    code, words = _ask(check.subject, _HAS_WANDB)
    return Seen(check, code == 0, words or None)


def _wandb_inside(check: Check) -> Seen:
    """An image that cannot be started here may be fine on a node: only a clear no counts."""
    programs, words = json.loads(check.subject)
    program = next((path for name in programs if (path := shutil.which(name))), None)
    if program is None:
        return Seen(check, True, "not looked at: the program is not on the path here")
    try:
        done = subprocess.run(
            [program, *words, "/bin/sh", "-c", _LOOK_INSIDE],
            capture_output=True, text=True, errors="replace", timeout=_SECONDS_INSIDE, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return Seen(check, True, "not looked at: the image does not start here")
    is_missing = "runyard: no wandb" in done.stdout.splitlines()
    trouble = None if done.returncode == 0 else "not looked at: the image does not start here"
    return Seen(check, not is_missing, None if is_missing else trouble)


def _ask(python: str, program: str) -> tuple[int, str]:
    try:
        done = subprocess.run(
            [python, "-I", "-c", program],
            capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 1, f"no answer in {_SECONDS:.0f} s"
    except OSError as error:
        return 1, error.strerror or str(error)
    lines = (done.stdout + done.stderr).strip().splitlines()
    return done.returncode, lines[-1] if lines else ""


_LOOKS: dict[str, Callable[[Check], Seen]] = {
    "file": _file,
    "folder": _folder,
    "image": _image,
    "program": _program,
    "python": _python,
    "wandb": _wandb,
    "wandb-inside": _wandb_inside,
}
