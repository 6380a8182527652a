"""Commands and servers that are forked from a warm process are as those in fresh processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.client import server_process
from runyard.client.discover import ensure_server
from runyard.home import Home, prepare, read_discovery
from tests import warm_commands
from tests.conftest import RunRunyard, server_pids, wait_until
from tests.warm_commands import run_warm
from tests.warm_orders import SERVER, WarmServer

_SAYS_ALL = 'echo "$WHO"; pwd; umask; cat; echo aside >&2; exit 3'


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--version"], 0),
        (["help", "runs"], 0),
        (["nosuch"], 2),
        (["run", "-q", "sh", "-c", _SAYS_ALL], 3),
        (["run", "-q", "sh", "-c", "kill -9 $$"], -9),
    ],
)
def test_it_ends_and_speaks_alike(
    words: list[str],
    code: int,
    state_folder: Home,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    before = os.umask(0o027)
    request.addfinalizer(lambda: os.umask(before))
    environment = {**os.environ, "WHO": "me"}
    subprocess.run([sys.executable, "-m", "runyard", "runs"], env=environment, capture_output=True)
    warm = run_warm(words, environment, tmp_path, "a line\n", 180)
    fresh = subprocess.run(
        [sys.executable, "-m", "runyard", *words],
        env=environment, cwd=tmp_path, input="a line\n", capture_output=True, text=True,
    )  # fmt: skip
    assert warm is not None
    assert (warm.returncode, warm.stdout, warm.stderr) == (code, fresh.stdout, fresh.stderr)
    assert fresh.returncode == code


def test_a_first_test_with_variables_of_its_own_spoils_it_for_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_commands, "_warm", None)
    environment = {**os.environ, "PYTHONUSERBASE": str(tmp_path)}
    assert run_warm(["--version"], environment, tmp_path, "", 180) is None
    assert run_warm(["--version"], dict(os.environ), tmp_path, "", 180)


def test_what_python_reads_at_its_start_takes_a_fresh_process(tmp_path: Path) -> None:
    environment = dict(os.environ)
    assert run_warm(["--version"], environment, tmp_path, "", 180)
    environment["PYTHONIOENCODING"] = "ascii"
    assert run_warm(["--version"], environment, tmp_path, "", 180) is None


@pytest.mark.live
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all servers are fresh processes")
@pytest.mark.parametrize("by", ["test", "command"])
def test_a_server_is_a_process_of_its_own(by: str, state_folder: Home, runyard: RunRunyard) -> None:
    if by == "test":
        ensure_server(state_folder).api.close()
    else:
        assert runyard("server", "start", env={"WHO": "me"}).returncode == 0
    discovery = read_discovery(state_folder)
    assert discovery is not None
    shown = Path(f"/proc/{discovery.pid}")
    words = shown.joinpath("cmdline").read_bytes().rstrip(b"\0").decode().split("\0")
    python = [sys.executable, "-m", "runyard.server", "--home", str(state_folder.path)]
    assert words[:5] == python
    assert server_pids(state_folder) == [discovery.pid]
    assert server_process.is_ours(discovery, state_folder)
    assert os.getsid(discovery.pid) == discovery.pid
    assert shown.joinpath("cwd").resolve() == state_folder.path.resolve()
    streams = [shown.joinpath("fd", str(number)).resolve() for number in range(3)]
    assert streams == [Path(os.devnull), *[state_folder.crash_log.resolve()] * 2]
    # Nothing that is not its own: no terminal, pipe or folder of the tests.
    folder = str(state_folder.path.resolve())
    files = [os.readlink(link) for link in shown.joinpath("fd").iterdir()]  # noqa: PTH115
    assert not [
        file for file in files if file.startswith("/") and not file.startswith((folder, "/dev/"))
    ]


@pytest.mark.live
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all servers are fresh processes")
def test_a_servers_end_is_told(state_folder: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(state_folder)
    command = [*SERVER, "--home", str(state_folder.path)]
    reader, writer = os.pipe()
    with state_folder.crash_log.open("ab") as crash_log:
        words = [*command, "--ready-fd", str(writer)]
        server = server_process.start(words, state_folder.path, crash_log, writer)
        assert isinstance(server, WarmServer)
        os.close(writer)
        with os.fdopen(reader) as ready:
            assert "note" in ready.readline()
        assert server.poll() is None
        os.kill(server.pid, signal.SIGKILL)
        wait_until(lambda: server.poll() is not None)
        assert server.poll() == -signal.SIGKILL
        # Read when its modules are loaded.
        monkeypatch.setenv("RUNYARD_LEASE_SECONDS", "5")
        server = server_process.start([*command, "--port", "no"], state_folder.path, crash_log, 2)
        assert not isinstance(server, WarmServer)
        assert server.wait() == 2
