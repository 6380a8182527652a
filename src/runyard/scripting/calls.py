"""Calls of functions as files: a job reads the call, and writes its outcome beside it.

Each list of calls has a folder in the state folder. `n.call` is call n, `n.outcome` is what it
returned or raised; a call with a file `n.canceled` is not made.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import secrets
import shlex
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from runyard.errors import RunyardError, UsageError

_PATHS = "paths.json"
_RUN_CALL = ["-m", "runyard.scripting.run_call"]


@dataclass(frozen=True)
class Call:
    """A function and its arguments."""

    function: Callable[..., Any]
    args: Sequence[Any] = ()
    keywords: Mapping[str, Any] | None = None
    name: str | None = None
    """Of its trial; None: the function's."""
    values: Mapping[str, Any] | None = None
    """What the run's config shows; None: the arguments."""

    def make(self) -> Any:
        return self.function(*self.args, **(self.keywords or {}))


@dataclass(frozen=True)
class Outcome:
    """What a call returned, or what it raised, with the traceback of the job as text."""

    value: Any = None
    error: BaseException | None = None
    traceback: str = ""


class RemoteTraceback(Exception):
    """The traceback of the job; Python prints it above the exception."""

    def __init__(self, text: str) -> None:
        super().__init__(f'\n"""\n{text}"""')


class NotReturned(RunyardError):
    """What the function returned or raised cannot be pickled."""


@dataclass(frozen=True)
class CallFolder:
    """The calls of one list."""

    path: Path

    @classmethod
    def make(cls, state: Path, project: Path, calls: Sequence[Call]) -> CallFolder:
        """Write all calls. The job will look for modules where this process finds them."""
        pickled = [_pickle_call(call) for call in calls]
        token = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        folder = cls(state / "calls" / token)
        folder.path.mkdir(mode=0o700, parents=True)
        (folder.path / _PATHS).write_text(json.dumps(list(_module_paths(project))))
        for number, content in enumerate(pickled, start=1):
            folder._file(number, "call").write_bytes(content)
        return folder

    @classmethod
    def of_command_line(cls, line: str) -> CallFolder | None:
        """The folder whose call this command line makes; None where it makes none."""
        words = shlex.split(line)
        return cls(Path(words[3])) if len(words) == 5 and words[1:3] == _RUN_CALL else None

    def command_line(self, number: int) -> str:
        return shlex.join([sys.executable, *_RUN_CALL, str(self.path), str(number)])

    def find_modules(self) -> None:
        """Let this process, which runs in the project's folder, import the caller's modules."""
        for place in json.loads((self.path / _PATHS).read_text()):
            full = str(Path.cwd() / place)
            if full not in sys.path:
                sys.path.append(full)

    def read_call(self, number: int) -> Call:
        # Pickles of the user's own, in a folder that only they can write to.
        call: Call = pickle.loads(self._file(number, "call").read_bytes())  # noqa: S301 - Our own file.
        return call

    def keep(self, number: int, outcome: Outcome) -> None:
        """Written whole or not at all: a job may be killed while it writes."""
        try:
            content = _pickler().dumps(outcome)
            pickle.loads(content)  # noqa: S301 - An exception may be sent, and not come back.
        except Exception as failure:
            what = f"raised {outcome.error!r}" if outcome.error else "returned"
            lost = NotReturned(f"what the function {what} cannot be sent back", said=failure)
            content = pickle.dumps(Outcome(error=lost, traceback=outcome.traceback))
        file = self._file(number, "outcome")
        part = file.with_suffix(f".part{os.getpid()}")
        part.write_bytes(content)
        part.replace(file)

    def outcome(self, number: int) -> Outcome | None:
        try:
            content = self._file(number, "outcome").read_bytes()
        except FileNotFoundError:
            return None
        outcome: Outcome = pickle.loads(content)  # noqa: S301 - As read_call.
        return outcome

    def forget(self, number: int) -> None:
        """Remove the outcome of an earlier attempt."""
        self._file(number, "outcome").unlink(missing_ok=True)

    def cancel(self, number: int) -> None:
        self._file(number, "canceled").touch()

    def is_canceled(self, number: int) -> bool:
        return self._file(number, "canceled").exists()

    def _file(self, number: int, kind: str) -> Path:
        return self.path / f"{number}.{kind}"


def failed(error: BaseException) -> Outcome:
    """What a call raised, without runyard's own frames."""
    frames = error.__traceback__.tb_next if error.__traceback__ else None
    frames = frames.tb_next if frames else None
    lines = traceback.format_exception(type(error), error, frames)
    return Outcome(error=error, traceback="".join(lines))


def _pickler() -> Any:
    """cloudpickle if it is installed: it also takes functions that are in no module."""
    try:
        return import_module("cloudpickle")
    except ImportError:
        return pickle


def _pickle_call(call: Call) -> bytes:
    name = name_of(call.function)
    pickler = _pickler()
    try:
        content: bytes = pickler.dumps(call)
    except Exception as error:
        more = "" if pickler is not pickle else _MEND
        raise UsageError(
            f"{name} and its arguments cannot be sent to a job", said=error, mend=more or None
        ) from None
    # Python's own pickle sends names: those of a script mean nothing in another process.
    if pickler is pickle and b"__main__" in content:
        raise UsageError(f"{name} needs what stands in the script that is run itself", mend=_MEND)
    return content


_MEND = (
    "pip install cloudpickle, which sends lambdas, functions inside functions and those of the "
    "script itself; or put the function into a module, and import it"
)


def name_of(function: Callable[..., Any]) -> str:
    inner = getattr(function, "func", function)  # Of a functools.partial.
    return str(getattr(inner, "__name__", type(inner).__name__)).strip("<>")


def _module_paths(project: Path) -> Iterator[str]:
    """Where modules are found; those in the project are relative, as jobs run a copy."""
    root = project.resolve()
    for place in map(Path, sys.path):
        full = (Path.cwd() / place).resolve()
        with contextlib.suppress(ValueError):
            yield str(full.relative_to(root))
            continue
        yield str(full)
