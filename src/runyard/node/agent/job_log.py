"""The job log of a list of command lines whose agents are jobs: nobody else watches their ends."""

from __future__ import annotations

import socket
from pathlib import Path

from runyard.client.job_log import Row, append_lines, exit_and_signal
from runyard.locks import FolderLock
from runyard.vocabulary import ENDED_STATES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from runyard.node.attempt.trial_attempt import Attempt
    from runyard.node.system.loop import Loop

# Agents of other nodes write to it as well, each for a moment.
_AGAIN_SECONDS = 1.0
_LAST_SECONDS = 10.0


class JobLog:
    """Rows of the tasks that this agent has run, written as they end.

    A command that watches the list holds the log's lock for as long as it does, and writes rows for
    all agents: what is not written by the end was its to write.
    """

    def __init__(self, loop: Loop, report: Callable[[str], None]) -> None:
        self._loop = loop
        self._report = report
        self._lines: dict[Path, list[str]] = {}
        self._is_due = False

    def add(self, attempt: Attempt, trial: dict[str, Any] | None) -> None:
        """An attempt has ended, and the server says what that makes of its trial."""
        task = attempt.claim.get("task")
        if task is None or trial is None or trial["state"] not in ENDED_STATES:
            return
        path = Path(task["log"] or f"{Path(attempt.workspace.trial_folder).parent}/joblog")
        self._lines.setdefault(path, []).append(str(_row(attempt, task, trial)))
        self._write_later(0.0)

    def close(self) -> None:
        """Write what is left."""
        for path in list(self._lines):
            self._write(path, _LAST_SECONDS)

    def _write_later(self, seconds: float) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.after(seconds, self._write_all)

    def _write_all(self) -> None:
        self._is_due = False
        for path in list(self._lines):
            self._write(path)
        if self._lines:
            self._write_later(_AGAIN_SECONDS)

    def _write(self, path: Path, seconds: float = 0.0) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with FolderLock(path) as lock:
                if lock.acquire(seconds):
                    append_lines(path, self._lines.pop(path))
        except OSError as error:
            self._lines.pop(path, None)
            self._report(f"the job log {path} cannot be written: {error}")


def _row(attempt: Attempt, task: dict[str, Any], trial: dict[str, Any]) -> Row:
    exit_value, signal = exit_and_signal(trial["exit_code"] or 0, trial["cause"])
    return Row(
        number=task["number"],
        host=socket.gethostname(),
        started_at=trial["began_at"],
        seconds=max(0.0, trial["ended_at"] - trial["began_at"]),
        received=attempt.console_bytes,
        exit_value=exit_value,
        signal=signal,
        command_line=task["command_line"],
    )
