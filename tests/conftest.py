"""What every ring of tests shares: a state folder of its own, and the real command line."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import HealthCheck, settings

from runyard.cli.main import main
from runyard.client import server_process
from runyard.client.discover import stop_server
from runyard.errors import RunyardError
from runyard.home import Home
from runyard.port_holder import HOLD_SECONDS
from runyard.search.worker import ONE_THREAD
from tests.node.terminals import until
from tests.order import read_seconds, turn
from tests.warm_commands import run_warm, start_warm_server

pytest_plugins = ["tests.slurm.plugin"]
# A busy machine makes nothing wrong: no example has a deadline.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

_OF_ANOTHER_JOB = ("WANDB_", "SLURM_", "SBATCH_", "RUNYARD_", "COMP_", "_ARGCOMPLETE")


def pytest_configure(config: pytest.Config) -> None:
    """In a script's background, or under nohup, we ignore signals, and so would what we start."""
    config.pluginmanager.register(_Cpu())
    load_with_one_thread("numpy")
    server_process.start = start_warm_server
    # A server that a test kills and forgets leaves nothing for long.
    os.environ[HOLD_SECONDS] = "60"
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes long begins first, so that of several processes (`-n`) none is left alone."""
    seconds = read_seconds(config.rootpath)
    items.sort(key=lambda item: turn(item.nodeid.partition("::")[0], seconds))


def load_with_one_thread(module: str) -> None:
    """As the server's searches have it. On busy cores several threads of linear algebra wait for
    each other by going round in circles: five times the processor's time for the same points."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in ONE_THREAD:
            patch.setenv(variable, "1")
        importlib.import_module(module)


class _Cpu:
    """What each part of a test took of the processor: `cpu` of its report, for scripts/suite.py."""

    def __init__(self) -> None:
        self._before = sum(os.times()[:4])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = sum(os.times()[:4])
        vars(report)["cpu"] = now - self._before
        self._before = now
        return report

    def pytest_runtest_logstart(self) -> None:
        self._before = sum(os.times()[:4])


class RunRunyard(Protocol):
    """Runs `runyard WORDS ...` to its end. `env` is laid over the environment of the test."""

    def __call__(
        self,
        *words: str,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        stdin: str | None = None,
        timeout: float = 180,
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture(autouse=True)
def no_client_of_another_test() -> None:
    """The stock client, used inside a test, leaves its process to whatever starts later."""
    os.environ.pop("WANDB_SERVICE", None)


@pytest.fixture
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """An isolated RUNYARD_HOME (not made yet); its server, if any, ends with the test."""
    isolate(tmp_path, monkeypatch)
    home = Home(tmp_path / "state")
    try:
        yield home
    finally:
        end_server(home)


@pytest.fixture(scope="module")
def module_environment() -> Iterator[pytest.MonkeyPatch]:
    """What a module changes of its surroundings; undone when its tests are over."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def module_home(
    tmp_path_factory: pytest.TempPathFactory, module_environment: pytest.MonkeyPatch
) -> Iterator[Home]:
    """An isolated RUNYARD_HOME for all tests of a module; its server, if any, ends with them."""
    folder = tmp_path_factory.mktemp("yard")
    isolate(folder, module_environment)
    home = Home(folder / "state")
    try:
        yield home
    finally:
        end_server(home)


@pytest.fixture
def runyard(state_folder: Home) -> RunRunyard:
    """The real command line, as a process of its own, on this test's state folder."""
    return run_runyard


def run_runyard(
    *words: str,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str | None = None,
    timeout: float = 180,
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **(env or {})}
    done = run_warm(words, environment, cwd or Path.cwd(), stdin or "", timeout)
    if done is not None:
        return done
    return subprocess.run(
        [sys.executable, "-m", "runyard", *words],
        env=environment,
        cwd=cwd,
        input=stdin or "",
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )


def ask_runyard(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The same in this process, a tenth of the time: for what is read over and over."""
    out, err = io.StringIO(), io.StringIO()
    with (
        _in_folder(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = main(list(words))
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _in_folder(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def isolate(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which nothing of this user, this shell or this job is seen."""
    for name in list(os.environ):
        if name.startswith(_OF_ANOTHER_JOB):
            monkeypatch.delenv(name)
    monkeypatch.setenv("RUNYARD_HOME", str(folder / "state"))
    monkeypatch.setenv(HOLD_SECONDS, "60")
    for name, place in (
        ("HOME", "home"),
        ("WANDB_CACHE_DIR", "wandb-cache"),
        ("WANDB_CONFIG_DIR", "wandb-config"),
        ("WANDB_DATA_DIR", "wandb-data"),
    ):
        (folder / place).mkdir(exist_ok=True)
        monkeypatch.setenv(name, str(folder / place))


def wait_until(is_so: Callable[[], object], seconds: float = 180) -> None:
    """Return when it is so; fail when it is not after a time in which it would have been."""
    until(is_so, "what should come about", seconds)


def end_server(home: Home) -> None:
    """Stop the server of a state folder, whatever the test did to either."""
    try:
        stop_server(home, force=True)
    except (RunyardError, OSError):
        for pid in server_pids(home):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def server_pids(home: Home) -> list[int]:
    """The live server processes of a state folder, as the operating system sees them."""
    return _pids_of("runyard.server", home)


def holder_pids(home: Home) -> list[int]:
    """Those that keep its server's port."""
    return _pids_of("runyard.port_holder", home)


def _pids_of(module: str, home: Home) -> list[int]:
    shown = subprocess.run(
        ["ps", "-ww", "-A", "-o", "pid=,ppid=,command="], capture_output=True, text=True, check=True
    ).stdout
    found = {
        int(line.split()[0]): int(line.split()[1])
        for line in shown.splitlines()
        if f"-m {module} " in line and f"--home {home.path} " in f"{line} "
    }
    # Where a server is about to start a command, that has the server's words for a moment.
    return [pid for pid, parent in found.items() if parent not in found]
