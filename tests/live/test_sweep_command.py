"""`runyard sweep` from the file to the best trial, with the real server and real programs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from runyard.home import Home
from tests.conftest import RunRunyard, server_pids
from tests.live.programs import list_runs, stock_client
from tests.live.sweeping import (
    WITH_WANDB,
    WITHOUT_WANDB,
    agents_of,
    api_of,
    kill,
    processes_of,
    programs_of,
    started_sweep,
    sweep_json,
    trials_of,
    with_python,
    write_sweep,
)
from tests.node.terminals import PATIENCE, Terminal, until

pytestmark = pytest.mark.live

LOSS = {"name": "loss", "goal": "minimize"}
LONG = 120.0  # A guard against a hang, never a measure.


def test_a_grid_runs_from_the_file_to_the_best_trial(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    folder = tmp_path / "spirals"
    parameters = {"lr": {"values": [3e-3, 0.01]}, "bs": {"values": [16, 32]}}
    file = write_sweep(folder, WITH_WANDB, metric=LOSS, parameters=parameters)
    ended = runyard("sweep", file.name, "-j", "2", cwd=folder, env=with_python(), timeout=LONG)
    assert ended.returncode == 0, ended.stderr

    sweep = sweep_json(runyard)
    assert (sweep["state"], sweep["project"]) == ("finished", "spirals")
    assert sweep["counts"]["finished"] == sweep["expected"] == 4
    winner = sweep["best"]
    assert winner is not None
    assert (winner["values"], winner["value"]) == ({"lr": 0.01, "bs": 16}, 0.016)

    # Trials, runs and folders have the same names, made of the swept values.
    names = {"lr3em3_bs16", "lr3em3_bs32", "lr1em2_bs16", "lr1em2_bs32"}
    assert {trial["name"] for trial in trials_of(state_folder)} == names
    runs = list_runs(runyard)
    assert {run["name"] for run in runs} == names
    for run in runs:
        place = folder / "sweeps" / sweep["id"] / run["name"]
        assert run["folder"] == str(place)
        assert (place / "checkpoints").is_dir()
        assert any((place / "wandb").glob("run-*"))
        assert (run["state"], run["steps"]) == ("finished", 3)
        assert run["config"]["lr"] in (3e-3, 0.01)

    # The report tells of the best one, and how to look further.
    assert "best  lr1em2_bs16  loss 0.016" in ended.stdout
    assert f"runyard show {sweep['id']} --best" in ended.stdout
    assert f"wandb agent {sweep['entity']}/spirals/{sweep['id']}" in ended.stderr
    best = runyard("show", sweep["id"], "--best", "-l", "1").stdout
    assert "lr1em2_bs16" in best
    assert "lr3em3" not in best
    assert "lr1em2_bs16" in runyard("show", sweep["id"]).stdout
    assert len(json.loads(runyard("runs", "--sweep", sweep["id"], "--json").stdout)) == 4
    assert not processes_of(state_folder, "node")
    assert not list(state_folder.spool.iterdir())


SWEEPER = """\
program: package.train
method: grid
metric:
  name: loss
parameters:
  lr:
    values: [0.003, 0.01]
  bs:
    value: 16
command:
  - ${interpreter}
  - -m
  - ${program}
  - ${args}
  - --seed=1
"""


def test_the_sweep_file_of_older_submit_scripts_runs_as_it_is(
    runyard: RunRunyard, tmp_path: Path
) -> None:
    """`sweeper.yml`: a module, swept values, fixed options behind them, a metric without a goal."""
    folder = tmp_path / "project_root"
    (folder / "package").mkdir(parents=True)
    (folder / "package" / "train.py").write_text(WITH_WANDB)
    (folder / "sweeper.yml").write_text(SWEEPER)
    ended = runyard("sweep", "sweeper.yml", cwd=folder, env=with_python(), timeout=LONG)
    assert ended.returncode == 0, ended.stderr
    sweep = sweep_json(runyard)
    assert (sweep["method"], sweep["counts"]["finished"]) == ("grid", 2)
    winner = sweep["best"]
    assert winner is not None
    # Less is better where no goal is said; 0.01 of it is the fixed option's.
    assert winner["values"] == {"lr": 0.01, "bs": 16}
    assert winner["value"] == pytest.approx(0.026)
    shown = runyard("show", winner["name"]).stdout
    assert "-m package.train --bs=16 --lr=0.01 --seed=1\n" in shown


def test_the_sweeps_values_and_project_win_inside_the_program(
    runyard: RunRunyard, tmp_path: Path
) -> None:
    """Over defaults, flags and what `wandb.init` is told; the client warns, and nothing fails."""
    program = (
        "import sys, wandb\n"
        "given = {'lr': float(sys.argv[1]), 'bs': 16}\n"
        "with wandb.init(project='elsewhere', config=given) as run:\n"
        "    run.log({'loss': run.config.lr})\n"
    )
    file = write_sweep(
        tmp_path / "p", program, project="here", command=["python", "${program}", "0.5"],
        parameters={"lr": {"values": [0.25]}},
    )  # fmt: skip
    ended = runyard("sweep", str(file), env=with_python(), timeout=LONG)
    assert ended.returncode == 0, ended.stderr
    (run,) = list_runs(runyard)
    assert (run["project"], run["config"]["lr"], run["config"]["bs"]) == ("here", 0.25, 16)
    assert run["summary"]["loss"] == 0.25
    told = runyard("logs", run["id"]).stdout
    assert re.search(r"Ignor\w+ .*project.* when running a sweep", told), told


def test_seeds_count_together(runyard: RunRunyard, tmp_path: Path) -> None:
    file = write_sweep(
        tmp_path / "p", WITH_WANDB, metric=LOSS,
        parameters={"lr": {"values": [0.01, 0.03]}}, runyard={"seeds": 3},
    )  # fmt: skip
    ended = runyard("sweep", str(file), "-j", "3", env=with_python(), timeout=LONG)
    assert ended.returncode == 0, ended.stderr
    shown = json.loads(runyard("show", "--best", "--json").stdout)["best"]
    assert [one["values"] for one in shown] == [{"lr": 0.01}, {"lr": 0.03}]
    assert [len(one["trials"]) for one in shown] == [3, 3]
    assert shown[0]["metrics"]["loss"] == pytest.approx({"mean": 0.01, "deviation": 0.01})
    assert "0.01 ± 0.01" in runyard("show", "--best").stdout


def test_trials_of_equal_values_have_folders_of_their_own(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    """Of one sweep by a number behind the name, of two by the sweep's id."""
    program = (
        "import os, pathlib\n"
        "place = pathlib.Path(os.environ['RUNYARD_CHECKPOINT_DIR'])\n"
        "assert not list(place.iterdir()), 'somebody was here'\n"
        "(place / 'mine').touch()\n"
    )
    file = write_sweep(
        tmp_path / "p", program, method="random", run_cap=3, parameters={"a": {"values": [1, 2]}}
    )
    folders = set()
    for _ in range(2):
        ended = runyard("sweep", str(file), env=with_python(), timeout=LONG)
        assert ended.returncode == 0, ended.stderr
        trials = trials_of(state_folder)
        names = {trial["name"] for trial in trials}
        assert len(names) == 3
        assert names & {"a1_2", "a2_2"}  # Two values for three trials.
        folders |= {run["folder"] for run in list_runs(runyard)}
    assert len(folders) == 6


def test_a_program_that_always_fails_ends_the_sweep_with_its_words(
    runyard: RunRunyard, tmp_path: Path
) -> None:
    program = "import sys\nprint('the data is missing')\nsys.exit(3)\n"
    file = write_sweep(tmp_path / "p", program, parameters={"a": {"values": list(range(20))}})
    ended = runyard("sweep", str(file), env=with_python(), timeout=LONG)
    assert ended.returncode == 1
    sweep = sweep_json(runyard)
    assert sweep["state"] == "failed"
    assert sweep["counts"]["failed"] == 5
    assert "exit code 3: the data is missing" in ended.stdout
    assert f"runyard retry {sweep['id']}" in ended.stdout
    logs = runyard("logs", trials_of(Home(tmp_path / "state"))[0]["id"])
    assert logs.stdout == "the data is missing\n"


def test_exit_code_75_means_go_on_later(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    program = (
        "import os, sys, pathlib\n"
        "place = pathlib.Path(os.environ['RUNYARD_CHECKPOINT_DIR']) / 'step'\n"
        "done = int(place.read_text()) if place.exists() else 0\n"
        "place.write_text(str(done + 1))\n"
        "print('attempt', os.environ['RUNYARD_ATTEMPT'], 'after', done)\n"
        "sys.exit(75 if done < 2 else 0)\n"
    )
    file = write_sweep(tmp_path / "p", program, parameters={"a": {"value": 1}})
    ended = runyard("sweep", str(file), env=with_python(), timeout=LONG)
    assert ended.returncode == 0, ended.stderr
    (trial,) = trials_of(state_folder)
    assert (trial["state"], trial["attempts"]) == ("finished", 3)
    assert runyard("logs", trial["id"]).stdout.split("\n") == [
        "attempt 1 after 0", "attempt 2 after 1", "attempt 3 after 2", "",
    ]  # fmt: skip


def test_an_agent_killed_with_9_leaves_no_process_and_its_trials_go_on(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    file = write_sweep(
        tmp_path / "p", WITHOUT_WANDB, parameters={"seconds": {"values": [600, 601]}}
    )
    with started_sweep(state_folder, str(file), "-j", "2", cwd=tmp_path) as process:
        until(lambda: len(programs_of(state_folder)) == 2, "two programs", LONG)
        before = {trial["name"]: trial["id"] for trial in trials_of(state_folder)}
        kill(agents_of(state_folder)[0])
        _, said = process.communicate(timeout=LONG)
        sweep = sweep_json(runyard)
        assert f"runyard sweep {sweep['id']}" in said
        until(lambda: not processes_of(state_folder, "train|node"), "the keeper to have ended all")
        # The keeper tells the server at once: nobody waits for a lease to run out.
        until(lambda: sweep_counts(state_folder)["waiting"] == 2, "both back in the queue")

        with started_sweep(state_folder, sweep["id"], "-j", "2", cwd=tmp_path) as again:
            until(lambda: len(programs_of(state_folder)) == 2, "both to go on", LONG)
            trials = trials_of(state_folder)
            assert {trial["name"]: trial["id"] for trial in trials} == before
            assert [trial["attempts"] for trial in trials] == [2, 2]
            again.send_signal(signal.SIGTERM)
            again.communicate(timeout=LONG)
            assert not processes_of(state_folder, "train|node")


def test_programs_whose_agent_and_keeper_are_both_gone_are_ended_by_the_next(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    """And so is what had left its process group."""
    program = (
        "import subprocess, sys, time\n"
        "if len(sys.argv) > 1:\n"
        "    subprocess.Popen([sys.executable, __file__], start_new_session=True)\n"
        "time.sleep(600)\n"
    )
    file = write_sweep(tmp_path / "p", program, parameters={"a": {"value": 1}})
    with started_sweep(state_folder, str(file), cwd=tmp_path) as process:
        until(lambda: len(programs_of(state_folder)) == 2, "program and its child", LONG)
        orphans = set(programs_of(state_folder))
        kill(process.pid, *agents_of(state_folder))
        process.communicate(timeout=LONG)
        assert orphans == set(programs_of(state_folder))

        runyard("sweep", "--pause", sweep_json(runyard)["id"])
        with started_sweep(state_folder, sweep_json(runyard)["id"], cwd=tmp_path) as again:
            until(lambda: not orphans & set(programs_of(state_folder)), "the orphans' end", LONG)
            again.send_signal(signal.SIGTERM)
            again.communicate(timeout=LONG)
            until(lambda: not processes_of(state_folder, "train|node"), "no process left")


def test_a_sweep_outlives_its_server(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    # The first two are there for as long as it takes to look and to kill on a busy machine.
    parameters = {"seconds": {"values": [6.0, 6.1, 1.7, 1.8]}}
    file = write_sweep(tmp_path / "p", WITHOUT_WANDB, parameters=parameters)
    with started_sweep(state_folder, str(file), "-j", "2", cwd=tmp_path) as process:
        until(lambda: len(programs_of(state_folder)) == 2, "two programs", LONG)
        programs = set(programs_of(state_folder))
        kill(*server_pids(state_folder))
        assert programs <= set(programs_of(state_folder))
        _, said = process.communicate(timeout=LONG)
        assert process.returncode == 0, said
        assert sweep_json(runyard)["counts"]["finished"] == 4
        assert all(trial["attempts"] == 1 for trial in trials_of(state_folder))
        assert not list(state_folder.spool.iterdir())


def test_a_command_that_is_killed_takes_its_agent_along(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    file = write_sweep(tmp_path / "p", WITHOUT_WANDB, parameters={"seconds": {"value": 600}})
    with started_sweep(state_folder, str(file), cwd=tmp_path) as process:
        until(lambda: programs_of(state_folder), "the program", LONG)
        kill(process.pid)
        process.communicate(timeout=LONG)
        until(lambda: not processes_of(state_folder, "train|node"), "the agent's end")
        assert sweep_counts(state_folder)["waiting"] == 1


def test_ctrl_c_hands_trials_back_and_says_how_to_go_on(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    file = write_sweep(
        tmp_path / "p", WITHOUT_WANDB, parameters={"seconds": {"values": [600, 601, 602]}}
    )
    command = ["runyard", "sweep", str(file), "-j", "2"]
    with Terminal(["sh", "-c", f'exec "$0" -m {" ".join(command)}', _python()], columns=80,
                  env=with_python()) as terminal:  # fmt: skip
        terminal.expect("2 running", LONG)
        until(lambda: len(programs_of(state_folder)) == 2, "two programs", LONG)
        terminal.type("\x03")
        terminal.expect("what now", LONG)
        terminal.type("s")
        found = terminal.expect(r"to go on:  runyard sweep (\w+)", LONG)
        assert terminal.wait() == 130
    assert found[1] == sweep_json(runyard)["id"]
    counts = sweep_counts(state_folder)
    assert (counts["waiting"], counts["running"], counts["failed"]) == (2, 0, 0)
    assert {trial["cause"] for trial in trials_of(state_folder)} == {"preempted"}
    assert not processes_of(state_folder, "train|node")


def test_a_second_ctrl_c_kills(state_folder: Home, tmp_path: Path) -> None:
    stubborn = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "open('ready', 'w').close()\ntime.sleep(600)\n"
    )
    file = write_sweep(tmp_path / "p", stubborn, parameters={"a": {"value": 1}})
    with started_sweep(state_folder, str(file), cwd=tmp_path) as process:
        until((file.parent / "ready").exists, "the program", LONG)
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.0)
        assert programs_of(state_folder)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
        assert not processes_of(state_folder, "train|node")


def test_cancel_ends_what_runs(runyard: RunRunyard, state_folder: Home, tmp_path: Path) -> None:
    file = write_sweep(
        tmp_path / "p", WITHOUT_WANDB, parameters={"seconds": {"values": [600, 601]}}
    )
    with started_sweep(state_folder, str(file), cwd=tmp_path) as process:
        until(lambda: programs_of(state_folder), "the program", LONG)
        cancelled = runyard("sweep", "--cancel", sweep_json(runyard)["id"])
        assert cancelled.returncode == 0, cancelled.stderr
        process.communicate(timeout=LONG)
        assert {trial["state"] for trial in trials_of(state_folder)} == {"canceled"}
        assert not processes_of(state_folder, "train|node")


def test_count_and_slots_bound_what_an_agent_takes(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    parameters = {"a": {"values": list(range(10))}}
    # Each waits for another one at its side: the slots work at the same time.
    program = (
        "import os, pathlib, sys, time\n"
        "here = pathlib.Path('here-a')\n"
        "here.mkdir(exist_ok=True)\n"
        "(here / str(os.getpid())).touch()\n"
        "end = time.time() + 60\n"
        "while len(list(here.iterdir())) < 2 and time.time() < end:\n"
        "    time.sleep(0.05)\n"
        "sys.exit(len(list(here.iterdir())) < 2)\n"
    )
    file = write_sweep(tmp_path / "p", program, parameters=parameters)
    first = runyard("sweep", str(file), "-j", "2", "--count", "3", env=with_python())
    assert first.returncode == 0, first.stderr
    sweep = sweep_json(runyard)
    assert (sweep["state"], sweep["counts"]["finished"]) == ("running", 3)
    rest = runyard("sweep", sweep["id"], "-j", "4", "--json", cwd=tmp_path, env=with_python())
    assert json.loads(rest.stdout)["counts"]["finished"] == 10


def test_failed_trials_are_tried_again_on_demand(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    program = "import os, sys\nsys.exit('--a=2' in sys.argv and not os.path.exists('mended'))\n"
    file = write_sweep(tmp_path / "p", program, parameters={"a": {"values": [1, 2, 3]}})
    runyard("sweep", str(file), env=with_python())
    sweep = sweep_json(runyard)
    assert (sweep["counts"]["finished"], sweep["counts"]["failed"]) == (2, 1)
    (file.parent / "mended").touch()
    retried = runyard("sweep", "--retry-failed", sweep["id"])
    assert "1 failed trials wait to be run again" in retried.stderr
    assert runyard("sweep", sweep["id"], env=with_python()).returncode == 0
    assert sweep_json(runyard)["counts"]["finished"] == 3


def test_a_sweep_made_here_is_worked_on_by_the_stock_agent(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    file = write_sweep(
        tmp_path / "p", WITH_WANDB, metric=LOSS, parameters={"lr": {"values": [0.01, 0.03]}}
    )
    made = runyard("sweep", file.name, "--no-run", "--json", "-P", "birds", cwd=file.parent)
    found = re.search(r"wandb agent (\S+)", made.stderr)
    assert found is not None
    wandb("agent", found[1], home=state_folder, cwd=file.parent)
    sweep = sweep_json(runyard)
    assert (sweep["state"], sweep["counts"]["finished"]) == ("finished", 2)
    assert sweep["best"] is not None
    assert sweep["best"]["values"] == {"lr": 0.01}


def test_a_sweep_made_by_the_stock_client_is_worked_on_here(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    file = write_sweep(
        tmp_path / "p", WITH_WANDB, metric=LOSS, parameters={"lr": {"values": [0.01, 0.03]}}
    )
    wandb("sweep", "-p", "birds", file.name, home=state_folder, cwd=file.parent)
    sweep = sweep_json(runyard)
    ended = runyard(
        "sweep", sweep["id"], "-j", "2", cwd=file.parent, env=with_python(), timeout=LONG
    )
    assert ended.returncode == 0, ended.stderr
    sweep = sweep_json(runyard)
    assert (sweep["state"], sweep["counts"]["finished"]) == ("finished", 2)
    assert (file.parent / "sweeps" / sweep["id"] / "lr1em2" / "checkpoints").is_dir()


def wandb(*words: str, home: Home, cwd: Path) -> None:
    """The stock command line, which logs here."""
    done = subprocess.run(
        [str(Path(_python()).parent / "wandb"), *words],
        cwd=cwd,
        env={**os.environ, **with_python(), **stock_client(home)},
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def sweep_counts(home: Home) -> dict[str, int]:
    return api_of(home).sweeps.sweeps(limit=1)[0]["counts"]


def _python() -> str:
    import sys

    return sys.executable
