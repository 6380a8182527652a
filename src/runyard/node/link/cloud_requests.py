"""Requests to the process that speaks with a server elsewhere (`cloud_process.py`)."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys

from runyard.node.system.loop import READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from runyard.node.system.loop import Loop


class CloudRequests:
    """The process that speaks with the server; begun when it is needed, and again if it dies."""

    def __init__(self, loop: Loop, url: str) -> None:
        self._loop = loop
        self._url = url
        self._process: subprocess.Popen[bytes] | None = None
        self._incoming = b""
        self._unanswered: dict[int, tuple[bytes, Callable[[dict[str, Any]], None]]] = {}
        self._asked = 0

    def ask(self, request: dict[str, Any], on_told: Callable[[dict[str, Any]], None]) -> None:
        self._asked += 1
        line = json.dumps({"id": self._asked, **request}).encode() + b"\n"
        self._unanswered[self._asked] = (line, on_told)
        if self._process is None:
            self._begin()
        else:
            self._write(line)

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            self._loop.forget(process.stdout.fileno())
            with contextlib.suppress(OSError):
                process.stdin.close()
            process.stdout.close()
            process.kill()
            process.wait()

    def _begin(self) -> None:
        source = __file__.rpartition("/runyard/")[0]
        start = f"import sys; sys.path.insert(0, {source!r}); "
        start += "from runyard.node.link.cloud_process import main; main()"
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", start, self._url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # A signal to our terminal is not for it.
        )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self._incoming = b""
        self._loop.watch(self._process.stdout.fileno(), READ, self._read)
        for line, _ in list(self._unanswered.values()):
            self._write(line)

    def _write(self, line: bytes) -> None:
        process = self._process
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError):  # It has died: that is read, and it is begun again.
                os.write(process.stdin.fileno(), line)

    def _read(self, _events: int) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            data = os.read(self._process.stdout.fileno(), 1 << 16)
        except BlockingIOError:
            return
        if not data:
            self.close()
            self._loop.after(1.0, self._begin_again)
            return
        self._incoming += data
        *lines, self._incoming = self._incoming.split(b"\n")
        for line in lines:
            answer = json.loads(line)
            known = self._unanswered.pop(answer.pop("id"), None)
            if known is not None:
                known[1](answer)

    def _begin_again(self) -> None:
        if self._process is None and self._unanswered:
            self._begin()
