"""Programs on a Python that has torch loaded already: real processes, started in milliseconds."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.train.frameworks import program_environment
from tests.train.ranks import LONGEST, Ended

SERVER = Path(__file__).parent / "programs" / "warm.py"


class Program:
    """A program that runs."""

    def __init__(self, python: WarmPython, pid: int, output: Path, errors: Path) -> None:
        self._python, self.pid, self._output, self._errors = python, pid, output, errors

    def wait(self, seconds: float = LONGEST) -> int | None:
        code: int | None = self._python.ask(pid=self.pid, seconds=seconds)["code"]
        return code

    def end(self) -> Ended:
        code = self.wait()
        if code is None:
            os.kill(self.pid, 9)
            self.wait()
            raise TimeoutError(self._errors.read_text() or self._output.read_text())
        return Ended(code, self._output.read_text(), self._errors.read_text())

    def stdout(self) -> str:
        return self._output.read_text() if self._output.exists() else ""


class WarmPython:
    """Starts programs. Their output goes to files in `folder`."""

    def __init__(self, server: subprocess.Popen[str], folder: Path) -> None:
        self._server, self._folder, self._count = server, folder, 0

    def ask(self, **order: Any) -> dict[str, Any]:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()
        answer: dict[str, Any] = json.loads(self._server.stdout.readline())
        return answer

    def load(self, module: str) -> None:
        """For all programs from now on."""
        self.ask(module=module)

    def start(self, program: Path, words: Sequence[str] = (), **more: str) -> Program:
        self._count += 1
        output = self._folder / f"{self._count}.out"
        errors = self._folder / f"{self._count}.err"
        answer = self.ask(
            program=str(program), words=list(words), environment=program_environment(**more),
            folder=str(Path.cwd()), output=str(output), errors=str(errors),
        )  # fmt: skip
        return Program(self, answer["pid"], output, errors)

    def run(self, program: Path, *words: str, **more: str) -> Ended:
        return self.start(program, words, **more).end()


@contextmanager
def warm_python(python: Path, folder: Path) -> Iterator[WarmPython]:
    server = subprocess.Popen(
        [str(python), str(SERVER)],
        env=program_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with server:
        yield WarmPython(server, folder)
        assert server.stdin is not None
        server.stdin.close()
