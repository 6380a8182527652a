"""`runyard server`, and a server that starts by itself, once, whatever else happens."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from runyard.client.discover import ensure_server
from runyard.home import Discovery, Home, prepare, read_discovery, write_discovery
from runyard.node.ranks.ports import Port
from tests.conftest import RunRunyard, end_server, server_pids
from tests.node.terminals import PATIENCE, RUNYARD, started, until

pytestmark = pytest.mark.live


def discovered(home: Home) -> Discovery:
    found = read_discovery(home)
    assert found is not None
    return found


def test_start_status_restart_stop(runyard: RunRunyard, state_folder: Home) -> None:
    assert runyard("server", "status").returncode == 3
    first = runyard("server", "start")
    assert first.returncode == 0
    before = discovered(state_folder)
    assert first.stdout == f"started at {before.url} (state in {state_folder.path})\n"
    again = runyard("server", "start")
    assert (again.returncode, again.stdout.split(" at ")[0]) == (0, "already running")
    status = runyard("server", "status")
    assert status.returncode == 0
    assert f"running at {before.url}, process {before.pid}" in status.stdout
    assert "changes written, the longest in" in status.stdout
    told = json.loads(runyard("server", "status", "--json").stdout)
    assert told["writer"]["commit"]["count"] > 0
    assert told["running"] is True
    assert (told["url"], told["pid"], told["runs"]) == (before.url, before.pid, 0)
    assert runyard("server", "restart").returncode == 0
    after = discovered(state_folder)
    assert after.pid != before.pid
    assert (after.url, after.key) == (before.url, before.key)
    assert runyard("server", "stop").stdout.startswith("stopped")
    until(lambda: not server_pids(state_folder), "its end")
    assert runyard("server", "stop").stdout.startswith("no server")
    stopped = runyard("server", "status", "--json")
    assert stopped.returncode == 3
    assert json.loads(stopped.stdout)["running"] is False


def test_ten_commands_from_cold_start_one_server(runyard: RunRunyard, state_folder: Home) -> None:
    commands = [
        subprocess.Popen([*RUNYARD, "runs"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(10)
    ]
    for command in commands:
        _, err = command.communicate(timeout=60)
        assert (command.returncode, b"Traceback" in err) == (0, False)
    assert state_folder.log.read_text().count(" serves ") == 1
    assert len(server_pids(state_folder)) == 1


def test_a_port_in_use_is_named_with_a_mend(runyard: RunRunyard, state_folder: Home) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = runyard("server", "start", "--port", str(port))
    assert done.returncode == 1
    assert f"port {port}" in done.stderr
    assert "Address already in use" in done.stderr
    assert "try:  give another --port" in done.stderr
    assert runyard("server", "start", "--port", str(port)).returncode == 0
    assert discovered(state_folder).port == port


@pytest.mark.parametrize("port", ["70000", "-1"])
def test_a_port_that_is_none(runyard: RunRunyard, state_folder: Home, port: str) -> None:
    done = runyard("server", "start", f"--port={port}")
    assert done.returncode == 2
    assert port in done.stderr
    assert "Traceback" not in done.stderr


def test_another_port_while_it_runs_needs_a_restart(
    runyard: RunRunyard, state_folder: Home
) -> None:
    runyard("server", "start")
    with Port() as free:
        refused = runyard("server", "start", "--port", str(free.number))
        assert refused.returncode == 1
        assert "already runs at" in refused.stderr
        assert runyard("server", "restart", "--port", str(free.number)).returncode == 0
        assert discovered(state_folder).port == free.number


def test_a_server_that_was_killed_is_told_and_replaced(
    runyard: RunRunyard, state_folder: Home
) -> None:
    runyard("server", "start")
    before = discovered(state_folder)
    os.kill(before.pid, signal.SIGKILL)
    until(lambda: runyard("server", "status").returncode == 3, "its death")
    assert "it died" in runyard("server", "status").stdout
    assert runyard("runs").returncode == 0
    after = discovered(state_folder)
    assert after.pid != before.pid
    assert (after.url, after.key) == (before.url, before.key)


@pytest.mark.parametrize("action", [["stop"], ["stop", "--force"], ["restart", "--force"]])
def test_a_foreign_process_with_our_old_number_is_left_alone(
    runyard: RunRunyard, state_folder: Home, action: list[str]
) -> None:
    runyard("server", "start")
    before = discovered(state_folder)
    end_server(state_folder)
    with subprocess.Popen(["sleep", "60"]) as foreign:
        write_discovery(state_folder, replace(before, pid=foreign.pid, running=True))
        assert "it died" in runyard("server", "status").stdout
        assert runyard("server", *action).returncode == 0
        assert runyard("runs").returncode == 0
        assert foreign.poll() is None
        foreign.kill()
    assert discovered(state_folder).key == before.key


def test_a_foreign_process_is_left_alone_also_while_a_server_holds_the_folder(
    runyard: RunRunyard, state_folder: Home
) -> None:
    runyard("server", "start")
    before = discovered(state_folder)
    os.kill(before.pid, signal.SIGSTOP)
    try:
        with subprocess.Popen(["sleep", "60"]) as foreign:
            write_discovery(state_folder, replace(before, pid=foreign.pid))
            done = runyard("server", "stop", "--force")
            assert done.returncode == 1
            assert foreign.poll() is None
            foreign.kill()
    finally:
        os.kill(before.pid, signal.SIGCONT)


def test_a_server_that_hangs_is_ended_by_force_only(
    runyard: RunRunyard, state_folder: Home
) -> None:
    runyard("server", "start")
    server = discovered(state_folder).pid
    os.kill(server, signal.SIGSTOP)
    with started("server", "status") as status, started("server", "stop") as refused:
        out, _ = status.communicate(timeout=PATIENCE)
        assert (status.returncode, b"does not answer" in out) == (3, True)
        _, err = refused.communicate(timeout=PATIENCE)
        assert (refused.returncode, b"stop --force" in err) == (1, True)
    assert runyard("server", "stop", "--force").returncode == 0
    until(lambda: not server_pids(state_folder), "its end")
    assert runyard("runs").returncode == 0


def test_a_damaged_discovery_file_costs_the_address_only(
    runyard: RunRunyard, state_folder: Home
) -> None:
    runyard("run", "-q", "true")
    end_server(state_folder)
    state_folder.discovery.write_text('{"url": ')
    assert runyard("server", "status").returncode == 3
    assert len(json.loads(runyard("runs", "--json").stdout)) == 1


def test_a_port_that_another_program_took_is_never_sent_the_key(
    runyard: RunRunyard, state_folder: Home
) -> None:
    prepare(state_folder)
    with socket.socket() as foreign:
        foreign.bind(("127.0.0.1", 0))
        foreign.listen()
        foreign.setblocking(False)
        port = foreign.getsockname()[1]
        stale = Discovery(
            url=f"http://127.0.0.1:{port}",
            key="k" * 40,
            pid=os.getpid(),
            hostname=socket.gethostname(),
            listen="127.0.0.1",
            port=port,
            version="0.1.0",
            started_at=0.0,
            running=True,
        )
        write_discovery(state_folder, stale)
        assert runyard("server", "status").returncode == 3
        moved = runyard("runs")
        assert moved.returncode == 0
        assert f"another program took port {port}" in moved.stderr
        with pytest.raises(BlockingIOError):
            foreign.accept()
    assert asdict(discovered(state_folder))["key"] == stale.key


def test_two_state_folders_stand_side_by_side(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    other = Home(tmp_path / "other")
    there = {"RUNYARD_HOME": str(other.path)}
    try:
        runyard("run", "-q", "-e", "here", "true")
        runyard("run", "-q", "-e", "there", "true", env=there)
        assert [run["name"] for run in json.loads(runyard("runs", "--json").stdout)] == ["here"]
        told = json.loads(runyard("runs", "--json", env=there).stdout)
        assert [run["name"] for run in told] == ["there"]
        one, two = discovered(state_folder), discovered(other)
        assert one.key != two.key
        assert one.port != two.port
        assert runyard("server", "stop", env=there).returncode == 0
        assert runyard("server", "status").returncode == 0
    finally:
        end_server(other)


def test_a_state_folder_behind_a_link_and_with_a_strange_name(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    real = Home(tmp_path / 'it\'s a "state" $folder;\nhere')
    (tmp_path / "link").symlink_to(real.path)
    try:
        runyard("run", "-q", "true", env={"RUNYARD_HOME": str(real.path)})
        behind = runyard("runs", "--json", env={"RUNYARD_HOME": str(tmp_path / "link")})
        assert behind.stderr == ""
        assert len(json.loads(behind.stdout)) == 1
    finally:
        end_server(real)


def test_the_server_outlives_the_command_and_its_terminal(
    runyard: RunRunyard, state_folder: Home
) -> None:
    with started("runs") as command:
        command.wait(PATIENCE)
        pid = discovered(state_folder).pid
        assert os.getsid(pid) == pid
    assert runyard("server", "status").returncode == 0


def test_env_gives_a_shell_what_it_needs(
    runyard: RunRunyard, state_folder: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = 'eval "$("$@")"; echo "$WANDB_BASE_URL $WANDB_API_KEY"'
    done = subprocess.run(
        ["sh", "-c", script, "-", *RUNYARD, "env"], capture_output=True, text=True, check=True
    )
    found = discovered(state_folder)
    url, key = done.stdout.split()
    assert url == found.url
    # A key of its own, which a shell that has it keeps.
    assert key != found.key
    monkeypatch.setenv("WANDB_BASE_URL", url)
    monkeypatch.setenv("WANDB_API_KEY", key)
    assert json.loads(runyard("env", "--json").stdout)["WANDB_API_KEY"] == key
    for shell in ("fish", "csh"):
        lines = runyard("env", "--shell", shell).stdout.splitlines()
        assert any(key in line and line.endswith(";") for line in lines)
    monkeypatch.setenv("WANDB_API_KEY", found.key)
    assert json.loads(runyard("env", "--json").stdout)["WANDB_API_KEY"] not in (key, found.key)


def test_stop_names_the_sweeps_whose_agents_start_it_again(
    runyard: RunRunyard, state_folder: Home
) -> None:
    api = ensure_server(state_folder).api
    config = {"method": "grid", "parameters": {"x": {"values": [1, 2]}}}
    idle, busy = (api.sweeps.create(config, project="birds") for _ in range(2))
    api.sweeps.begin_agent(busy["key"], token="t", host="n1", pid=1, slots=1)
    said = runyard("server", "stop").stderr
    assert f"agents of sweep {busy['id']} are at work" in said
    assert idle["id"] not in said
