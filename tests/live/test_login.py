"""What `runyard login` stores, the stock client finds; and where a program's calls go."""

from __future__ import annotations

import json
import os
import pty
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from runyard import filesystems
from runyard.actions.server.login import _obstacles
from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.home import Home, read_discovery
from tests.conftest import end_server, run_runyard
from tests.live.programs import LOG_STEPS, PYTHON, write_program

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def yard(module_home: Home) -> Home:
    return module_home


@pytest.fixture
def fresh_home(yard: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without any key."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def api_of(home: Home) -> Api:
    return ensure_server(home).api


def test_a_client_logs_with_what_login_stored(yard: Home, fresh_home: Path) -> None:
    done = run_runyard("login")
    assert done.returncode == 0, done.stderr
    netrc = fresh_home / ".netrc"
    assert stat.S_IMODE(netrc.stat().st_mode) == 0o600
    discovery = read_discovery(yard)
    assert discovery is not None
    assert discovery.key not in done.stdout + done.stderr + netrc.read_text()
    before = netrc.read_text()
    assert run_runyard("login").returncode == 0
    assert netrc.read_text() == before  # The key is good: no other one is made.
    program = write_program(fresh_home / "project", LOG_STEPS)
    subprocess.run(
        [PYTHON, str(program), "3", "100"],
        cwd=program.parent,
        env={**os.environ, "WANDB_BASE_URL": discovery.url, "WANDB_PROJECT": "by-netrc"},
        check=True,
        capture_output=True,
    )
    (run,) = api_of(yard).runs(project="by-netrc")
    assert run["state"] == "finished"


def test_a_key_for_somebody_elses_server_comes_from_stdin(yard: Home, fresh_home: Path) -> None:
    key = api_of(yard).people.add_key("for login")["key"]
    url = api_of(yard).url
    done = run_runyard("login", "--host", url, "--json", stdin=f"{key}\n")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["machines"] == [url.removeprefix("http://"), "127.0.0.1"]
    assert key in (fresh_home / ".netrc").read_text()
    # It works, so nothing is asked; with --relogin another takes its place.
    assert run_runyard("login", "--host", url).returncode == 0
    other = api_of(yard).people.add_key("another")["key"]
    assert run_runyard("login", "--host", url, "--relogin", stdin=other).returncode == 0
    assert key not in (fresh_home / ".netrc").read_text()


def test_the_key_in_netrc_is_copied_into_the_project_and_used_from_there(
    yard: Home, fresh_home: Path
) -> None:
    url, folder = api_of(yard).url, fresh_home / "project"
    folder.mkdir()
    key = api_of(yard).people.add_key("work")["key"]
    assert run_runyard("login", "--host", url, stdin=f"{key}\n").returncode == 0
    # Nothing is asked for: the key that netrc has for this server works.
    copied = run_runyard("login", "--host", url, "--account", "work_account", cwd=folder)
    assert copied.returncode == 0, copied.stderr
    kept = folder / "keys.json"
    assert json.loads(kept.read_text()) == {"work_account": key}
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    # Where the file is, its key is used, with netrc and without it.
    for there in (True, False):
        if not there:
            (fresh_home / ".netrc").unlink()
        told = run_runyard("login", "--check", "--host", url, "--json", cwd=folder)
        assert told.returncode == 0, told.stderr + told.stdout
        assert json.loads(told.stdout)["source"] == f"{kept} (work_account)"


def test_on_a_terminal_the_key_is_not_shown(yard: Home, fresh_home: Path) -> None:
    made, url = api_of(yard).people.add_key("typed")["key"], api_of(yard).url
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, "-m", "runyard", "login", "--host", url])
    shown = b""
    while b"not shown" not in shown:
        shown += os.read(terminal, 1000)
    os.write(terminal, f"{made}\n".encode())
    try:
        while piece := os.read(terminal, 1000):
            shown += piece
    except OSError:  # The terminal is gone: it has ended.
        pass
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert made.encode() not in shown
    assert b"logged in" in shown
    assert made in (fresh_home / ".netrc").read_text()


@pytest.mark.parametrize("stdin", ["", "too-short", "k" * 39 + " x"])
def test_what_is_no_key_is_refused(yard: Home, fresh_home: Path, stdin: str) -> None:
    done = run_runyard("login", "--host", api_of(yard).url, stdin=stdin)
    assert done.returncode == 2
    assert "  try:  " in done.stderr
    assert not (fresh_home / ".netrc").exists()


def test_a_key_that_does_not_work_is_not_stored(yard: Home, fresh_home: Path) -> None:
    done = run_runyard("login", "--host", api_of(yard).url, stdin="x" * 40)
    assert done.returncode == 1
    assert "refused the key" in done.stderr
    assert not (fresh_home / ".netrc").exists()


def test_check_says_whether_the_key_works_and_reaches_the_nodes(
    yard: Home, fresh_home: Path
) -> None:
    missing = run_runyard("login", "--check")
    assert missing.returncode == 1
    assert "there is no key for" in missing.stderr
    run_runyard("login")
    told = json.loads(run_runyard("login", "--check", "--json").stdout)
    assert (told["works"], told["reaches_nodes"]) == (True, False)
    assert any("from this machine only" in line for line in told["trouble"])
    wrong = run_runyard("login", "--check", env={"WANDB_API_KEY": "x" * 40})
    assert wrong.returncode == 1
    assert "does not work" in wrong.stdout


def test_check_names_what_keeps_a_key_from_the_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a folder is on a network is a double: no machine of ours has such a mount."""
    shared = tmp_path / "shared"
    monkeypatch.setattr(filesystems, "is_network_folder", lambda folder: folder == shared)
    far, netrc = "http://login1.cluster:26110", f"{shared / '.netrc'} (login1.cluster)"
    assert _obstacles(far, netrc) == []
    (address,) = _obstacles("http://127.0.0.1:26110", netrc)
    assert "from this machine only" in address
    (disk,) = _obstacles(far, f"{tmp_path / '.netrc'} (login1.cluster)")
    assert "is on a disk of this machine" in disk
    (shell,) = _obstacles(far, "WANDB_API_KEY")
    assert "only if its script passes it on" in shell


def test_a_program_can_log_to_another_server(yard: Home, fresh_home: Path, tmp_path: Path) -> None:
    """The other server is one of ours, as a double for any server of W&B's protocol."""
    other = Home(tmp_path / "other")
    try:
        far = ensure_server(other).api
        key = far.people.add_user("bob")["key"]
        (fresh_home / "wandb_credentials.txt").write_text(key)
        (fresh_home / "wandb_credentials.txt").chmod(0o600)
        program = write_program(tmp_path / "project", LOG_STEPS)
        words = ("run", "-q", "-P", "far", "--tracking", far.url, "--", PYTHON, str(program))
        done = run_runyard(*words, "4", "100", cwd=program.parent)
        assert done.returncode == 0, done.stderr
        (sent,) = far.runs(project="far")
        assert (sent["entity"], sent["steps"], sent["state"]) == ("bob", 4, "finished")
        # Our own server has the console and the end, as of any program.
        (seen,) = api_of(yard).runs(project="far")
        assert (seen["steps"], seen["state"]) == (0, "finished")
        env = run_runyard("env", "--tracking", far.url, "--json")
        assert json.loads(env.stdout) == {"WANDB_BASE_URL": far.url, "WANDB_API_KEY": key}
    finally:
        end_server(other)


def test_without_a_key_nothing_starts(yard: Home, fresh_home: Path) -> None:
    done = run_runyard("run", "--tracking", "cloud", "echo", "started")
    assert (done.returncode, done.stdout) == (125, "")
    assert "there is no key for https://api.wandb.ai" in done.stderr
    env = run_runyard("env", "--tracking", "cloud", "--json", env={"WANDB_API_KEY": "k" * 40})
    assert json.loads(env.stdout) == {
        "WANDB_BASE_URL": "https://api.wandb.ai",
        "WANDB_API_KEY": "k" * 40,
    }
