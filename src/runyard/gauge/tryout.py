"""Runs a program outside of any sweep: wandb offline, a temporary folder, no tracking."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from runyard.gauge.steps import Steps
from runyard.node.system.processes import MARK, marked
from runyard.train.progress_file import VARIABLE as PROGRESS_FILE
from runyard.train.rehearsing import VARIABLE as REHEARSAL

_DROPPED = ("WANDB_RUN_ID", "WANDB_API_KEY", "WANDB_BASE_URL", "WANDB_SERVICE", "WANDB_SWEEP_ID")
_GRACE_SECONDS = 5.0
_LAST_LINES = 12


class CannotStart(Exception):
    """The program could not be started. The text says why."""


class Tryout:
    """One program. `environ` is its environment; `folder` holds what it logs.

    A context manager: at its end the program, all that it started, and its folder are gone.
    """

    def __init__(
        self,
        name: str = "tryout",
        *,
        rung: str | None = None,
        environ: Mapping[str, str] = os.environ,
        more: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.token = secrets.token_hex(8)
        self.folder = Path(tempfile.mkdtemp(prefix="runyard-aside-"))
        (self.folder / "checkpoints").mkdir()
        self.environ = {
            **{key: value for key, value in environ.items() if key not in _DROPPED},
            "WANDB_MODE": "offline",
            "WANDB_SILENT": "true",
            "WANDB_DIR": str(self.folder),
            "WANDB_NAME": name,
            "WANDB_X_TRANSACTION_LOG_FLUSH_INTERVAL": "0.1",
            "RUNYARD_TRIAL": name,
            "RUNYARD_ATTEMPT": "1",
            "RUNYARD_CHECKPOINT_DIR": str(self.folder / "checkpoints"),
            "RUNYARD_STOP_FILE": str(self.folder / "stop"),
            "PYTHONUNBUFFERED": "1",
            PROGRESS_FILE: str(self.folder / "progress"),
            MARK: self.token,
            **(more or {}),
        }
        if rung is not None:
            self.environ[REHEARSAL] = rung
        self.steps = Steps(self.folder)
        self.pid = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, words: Sequence[str], cwd: Path) -> int:
        """Start the program in its own process group; return its process number."""
        try:
            with (self.folder / "output").open("wb") as output:
                self._process = subprocess.Popen(
                    list(words),
                    cwd=cwd,
                    env=self.environ,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            raise CannotStart(f"could not be started: {error}") from error
        self.pid = self._process.pid
        return self.pid

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        return None if self._process is None else self._process.poll()

    def wait(self, seconds: float) -> int | None:
        """Its exit code; None if it still runs after `seconds`."""
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    def said(self) -> str:
        """The last lines of its output."""
        try:
            text = (self.folder / "output").read_text(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.rstrip().splitlines()[-_LAST_LINES:])

    def end(self) -> None:
        """End the program and all processes that it started."""
        if self._process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE_SECONDS)
        for pid in marked([self.token]):  # Processes that left the group.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def __enter__(self) -> Tryout:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)
