"""One run from the program to the terminal, with the stock client."""

from __future__ import annotations

import getpass
import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.client.discover import ensure_server
from runyard.home import Home
from tests.conftest import RunRunyard
from tests.live.programs import LOG_STEPS, PYTHON, curves, list_runs, write_program

pytestmark = pytest.mark.live

EVERYTHING = """
import math, sys, time, wandb
run = wandb.init(
    config={"lr": 0.1, "layers": [64, 32], "opt": {"name": "adam", "betas": (0.9, 0.999)},
            "flag": True, "nothing": None, "text": "a 'quoted' \\u00fc"},
    tags=["first"], notes="a note",
)
print("hello from stdout")
print("hello from stderr", file=sys.stderr)
for step in range(20):
    run.log({"loss": 1 / (step + 1), "deep": {"er": {"still": step}}, "odd/key.name": -step})
run.log({"loss": float("nan"), "big": float("inf")})
run.summary["best"] = 0.05
time.sleep(3)
"""


def test_everything_that_a_run_sends_is_kept(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    program = write_program(tmp_path / "project", EVERYTHING)
    # System metrics are sampled every 15 s by default: too seldom for a short test.
    ended = runyard(
        "run", "--", PYTHON, str(program), cwd=program.parent,
        env={"WANDB_X_STATS_SAMPLING_INTERVAL": "0.5"},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "hello from stdout" in ended.stdout

    (run,) = list_runs(runyard)
    assert run["state"] == "finished"
    assert run["exit_code"] == 0
    assert run["project"] == "project"
    assert run["config"] == {
        "lr": 0.1,
        "layers": [64, 32],
        "opt": {"name": "adam", "betas": [0.9, 0.999]},
        "flag": True,
        "nothing": None,
        "text": "a 'quoted' ü",
    }
    assert run["tags"] == ["first"]
    assert run["notes"] == "a note"
    assert run["summary"]["best"] == 0.05
    assert run["summary"]["loss"] == "NaN"
    assert run["summary"]["big"] == "Infinity"
    assert run["steps"] == 21

    kept = curves(state_folder, run["id"])
    assert kept["loss"]["count"] == 21
    assert kept["loss"]["values"][:3] == [1, 1 / 2, 1 / 3]
    assert kept["loss"]["values"][-1] is None
    assert kept["deep.er.still"]["values"] == list(range(20))
    assert kept["odd/key.name"]["minimum"] == -19

    console = runyard("logs", run["id"]).stdout
    assert "hello from stdout\n" in console
    assert "hello from stderr\n" in console

    api = ensure_server(state_folder).api
    detail = api.run(run["id"])
    assert {"config.yaml", "wandb-metadata.json", "wandb-summary.json", "output.log"} <= set(
        detail["files"]
    )
    system = api.rows(detail, stream="system")
    assert {key for row in system for key in row} >= {"system.cpu"}

    shown = runyard("show").stdout
    for expected in ("lr", "0.1", "deep.er.still", "best", "finished", "a note"):
        assert expected in shown


def test_a_program_without_wandb_is_recorded_too(runyard: RunRunyard, tmp_path: Path) -> None:
    script = "echo out; echo err >&2; exit 7"
    ended = runyard("run", "--name", "plain", "--", "sh", "-c", script, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (7, "out\n")

    (run,) = list_runs(runyard)
    assert run["command"] == ["sh", "-c", script]
    assert (run["name"], run["state"], run["exit_code"]) == ("plain", "failed", 7)
    assert run["folder"] == str(tmp_path)
    assert run["ended_at"] >= run["started_at"]
    assert sorted(runyard("logs", "plain").stdout.split()) == ["err", "out"]


def test_a_program_that_names_its_run_has_one_run(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    """As Ultralytics does. What is printed before the run begins belongs to it, too."""
    program = write_program(
        tmp_path / "project",
        "import wandb\n"
        'print("before it begins")\n'
        'run = wandb.init(project="runs-detect", name="train", id="train_1", resume="allow")\n'
        'run.log({"a": 1})\n'
        "run.finish()\n",
    )
    ended = runyard("run", "--", PYTHON, str(program), cwd=program.parent)
    assert ended.returncode == 0, ended.stderr
    (run,) = list_runs(runyard)
    assert (run["id"], run["name"], run["project"]) == ("train_1", "train", "runs-detect")
    assert (run["state"], run["steps"], run["command"]) == ("finished", 1, [PYTHON, str(program)])
    console = runyard("logs", "train_1").stdout
    assert console.count("before it begins\n") == 1
    assert "run train_1 finished" in ended.stderr
    (announced,) = re.findall(r"run (\w+) \(", ended.stderr)
    assert json.loads(runyard("show", announced, "--json").stdout)["id"] == "train_1"


@pytest.mark.parametrize(
    ("last_words", "code", "state"),
    [
        ("raise RuntimeError('boom')", 1, "failed"),
        ("sys.exit(3)", 3, "failed"),
        ("run.finish(); sys.exit(4)", 4, "failed"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, "crashed"),
    ],
)
def test_the_end_is_the_programs_own(
    runyard: RunRunyard, tmp_path: Path, last_words: str, code: int, state: str
) -> None:
    program = write_program(
        tmp_path, f"import sys, wandb\nrun = wandb.init()\nrun.log({{'a': 1}})\n{last_words}\n"
    )
    assert runyard("run", "--", PYTHON, str(program), cwd=tmp_path).returncode == code
    (run,) = list_runs(runyard)
    assert (run["state"], run["exit_code"]) == (state, code if code >= 0 else 128 - code)


def test_the_project_that_the_program_names_wins(runyard: RunRunyard, tmp_path: Path) -> None:
    program = write_program(
        tmp_path, "import wandb\nwith wandb.init(project='mine', name='n') as r: r.log({'a': 1})\n"
    )
    assert runyard("run", "--", PYTHON, str(program), cwd=tmp_path).returncode == 0
    (run,) = list_runs(runyard)
    assert (run["project"], run["name"], run["steps"]) == ("mine", "n", 1)


def test_the_client_of_whoever_started_us_is_not_the_programs(
    runyard: RunRunyard, tmp_path: Path
) -> None:
    """A notebook that used wandb hands its client's process to all that it starts."""
    program = write_program(tmp_path / "project", LOG_STEPS)
    gone = {"WANDB_SERVICE": f"3-1-unix-{tmp_path}/socket"}
    words = ("run", "--", PYTHON, str(program), "3", "100")
    ended = runyard(*words, cwd=program.parent, env=gone)
    assert ended.returncode == 0, ended.stderr
    (run,) = list_runs(runyard)
    assert run["state"] == "finished"


def test_the_entity_can_be_named(runyard: RunRunyard, tmp_path: Path) -> None:
    program = write_program(
        tmp_path,
        "import sys, wandb\nwandb.init(entity=(sys.argv[1:] or [None])[0]).log({'a': 1})\n",
    )
    for words in ([], ["our-team"]):
        ended = runyard("run", "--", PYTHON, str(program), *words, cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
    named, default = list_runs(runyard)
    assert named["entity"] == "our-team"
    assert default["entity"] == getpass.getuser()


def test_an_unknown_option_starts_nothing(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    refused = runyard("run", "--tagg", "x", "--", "touch", str(tmp_path / "started"))
    assert refused.returncode == 2
    assert "--tag" in refused.stderr
    assert not (tmp_path / "started").exists()
    assert not state_folder.path.exists()


def test_the_options_of_run_reach_the_run(runyard: RunRunyard, tmp_path: Path) -> None:
    program = write_program(tmp_path, LOG_STEPS)
    ended = runyard(
        "run", "-P", "some project", "-e", "my name", "--tag", "one", "--tag", "two",
        "--group", "team", "--notes", "why, and how", PYTHON, str(program), "3", "1000",
        cwd=tmp_path,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    (run,) = list_runs(runyard)
    assert (run["project"], run["name"], run["group"]) == ("some project", "my name", "team")
    assert (run["tags"], run["notes"]) == (["one", "two"], "why, and how")


def test_without_a_program_the_projects_command_runs_in_its_root(
    runyard: RunRunyard, tmp_path: Path
) -> None:
    """As older submit scripts have it: the command in a file beside them, below the root."""
    stands = tmp_path / "project_root" / "hpc_files"
    stands.mkdir(parents=True)
    (stands.parent / "my_program.py").write_text("import os, sys\nprint(os.getcwd(), sys.argv)\n")
    (stands / "experiment_configurations.txt").write_text(f"{PYTHON} my_program.py \\\n --lr 1\n")
    done = runyard("run", "--exp-name", "typed", cwd=stands)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{stands.parent} ['my_program.py', '--lr', '1']\n"
    (run,) = list_runs(runyard)
    assert (run["name"], run["project"]) == ("typed", "project_root")


def test_the_same_id_again_goes_on_where_it_stopped(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    program = write_program(tmp_path, LOG_STEPS)
    for _ in range(2):
        ended = runyard(
            "run", "--", PYTHON, str(program), "10", "1000",
            cwd=tmp_path, env={"WANDB_RUN_ID": "again"},
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
    (run,) = list_runs(runyard)
    assert run["id"] == "again"
    kept = curves(state_folder, "again")["value"]
    assert kept["steps"] == list(range(20))
    assert kept["values"] == [step * step for step in range(10)] * 2
    assert [one["number"] for one in ensure_server(state_folder).api.run("again")["attempts"]] == [
        1,
        2,
    ]


def test_any_shell_can_log_here(runyard: RunRunyard, state_folder: Home, tmp_path: Path) -> None:
    """`eval "$(runyard env)"`, then the program as ever."""
    program = write_program(tmp_path, LOG_STEPS)
    python = shlex.quote(sys.executable)
    done = subprocess.run(
        [
            "sh",
            "-c",
            f'eval "$({python} -m runyard env)"; export WANDB_PROJECT=shell; '
            f"exec {python} {shlex.quote(str(program))} 5 1000",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (run,) = list_runs(runyard)
    assert (run["project"], run["state"], run["exit_code"]) == ("shell", "finished", 0)
    assert curves(state_folder, run["id"])["value"]["steps"] == list(range(5))


def test_folders_with_hostile_names(runyard: RunRunyard, tmp_path: Path) -> None:
    folder = tmp_path / "a b'c\"d;$(touch injected)\nnew line #1"
    program = write_program(folder, LOG_STEPS, "train it.py")
    ended = runyard(
        "run", "--", PYTHON, str(program), "2", "1000",
        cwd=folder, env={"RUNYARD_HOME": str(folder / "state of things")},
    )  # fmt: skip
    runyard("server", "stop", env={"RUNYARD_HOME": str(folder / "state of things")})
    assert ended.returncode == 0, ended.stderr
    assert not list(tmp_path.rglob("injected"))
