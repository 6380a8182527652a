"""A trial in a real container: Charliecloud, an image of a few folders, the stock wandb client."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.client.discover import ensure_server
from runyard.clusters.profile import Profile
from runyard.config.request import Environment
from runyard.home import Home, read_discovery
from runyard.launch.environment_checks import look
from runyard.launch.environment_places import find_environment_places
from runyard.launch.environments import wrap
from runyard.schedulers.slurm.script_words import WORDS
from tests.conftest import RunRunyard
from tests.live.programs import curves, stock_client
from tests.live.small_image import host_mounts, make_image
from tests.live.sweeping import api_of, write_sweep
from tests.node.terminals import until

pytestmark = pytest.mark.live

LOGS = """\
import os, pathlib, sys, wandb
run = wandb.init()
for step in range(5):
    run.log({"value": step})
pathlib.Path(os.environ["RUNYARD_CHECKPOINT_DIR"], "state").write_text("saved")
pathlib.Path("/tmp/scrap").write_text("gone with the box")
pathlib.Path.home().joinpath("note").write_text("gone with the box")
print("in the image:", pathlib.Path("/in-the-image").read_text())
print("home:", os.environ["HOME"])
print("host:", os.environ.get("OF_THE_HOST"))
print("lr:", run.config.lr)
run.finish()
"""
SAVES_WHEN_TOLD = """\
import os, pathlib, signal, sys, time
told = []
signal.signal(signal.SIGUSR2, lambda *_: told.append(1))
signal.signal(signal.SIGTERM, signal.SIG_DFL)
folder = pathlib.Path(os.environ["RUNYARD_CHECKPOINT_DIR"])
(folder / "up").write_text("listens")
while not told:
    time.sleep(0.02)
(folder / "state").write_text("stop file: " + str(os.path.exists(os.environ["RUNYARD_STOP_FILE"])))
sys.exit(75)
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_image(tmp_path_factory.mktemp("images") / "small")


def write_job(
    folder: Path, image: Path | str, key: int, kind: str = "charliecloud", **options: object
) -> Path:
    """job.json, as a submission writes it."""
    environment = Environment(kind=kind, image=str(image), mounts=host_mounts())
    setting = find_environment_places(
        environment, Profile(), project=folder, work=folder, words=WORDS
    )
    wrapping = wrap(environment, Profile(), setting)
    assert all(one.is_fine for one in look(wrapping.checks))
    file = folder / "job.json"
    job = {"sweep": key, "launcher": list(wrapping.launcher), "folder": str(folder), "slots": 1}
    file.write_text(json.dumps({**job, **options}))
    return file


def start_agent(home: Home, job: Path, local: Path) -> subprocess.Popen[str]:
    local.mkdir()
    environ = {
        **os.environ,
        "RUNYARD_HOME": str(home.path),
        "SLURM_TMPDIR": str(local),
        "OF_THE_HOST": "stays outside",
    }
    return subprocess.Popen(
        [sys.executable, "-m", "runyard.node.agent", "--job", str(job)],
        env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def make_sweep(
    runyard: RunRunyard, folder: Path, program: str, python: str = sys.executable
) -> tuple[int, str]:
    command = [python, "${program}", "${args}"]
    file = write_sweep(folder, program, command=command, parameters={"lr": {"values": [0.5]}})
    made = runyard("sweep", "--no-run", "--json", str(file), cwd=folder)
    assert made.returncode == 0, made.stderr
    told = json.loads(made.stdout)
    return told["key"], told["id"]


def test_a_trial_in_an_image_logs_to_the_embedded_server(
    runyard: RunRunyard, state_folder: Home, image: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "my project"
    key, _ = make_sweep(runyard, folder, LOGS)
    job = write_job(folder, image, key)
    process = start_agent(state_folder, job, tmp_path / "local disk")
    said, _ = process.communicate(timeout=90)
    assert process.returncode == 0, said
    (trial,) = api_of(state_folder).sweeps.trials(key)
    assert trial["state"] == "finished"
    assert curves(state_folder, trial["id"])["value"]["values"] == list(range(5))
    printed = runyard("logs", trial["id"]).stdout
    assert "in the image: yes" in printed
    assert "host: None" in printed
    assert "lr: 0.5" in printed
    assert f"home: {tmp_path}/local disk/runyard-box-" in printed
    (state,) = folder.rglob("checkpoints/state")
    assert state.read_text() == "saved"
    assert not (image / "tmp" / "scrap").exists()
    discovery = read_discovery(state_folder)
    assert discovery is not None
    assert discovery.key not in said + printed + job.read_text()


def test_a_program_in_an_image_hears_that_it_is_to_save(
    runyard: RunRunyard, state_folder: Home, image: Path, tmp_path: Path
) -> None:
    ensure_server(state_folder)
    folder = tmp_path / "project"
    key, _ = make_sweep(runyard, folder, SAVES_WHEN_TOLD)
    job = write_job(folder, image, key)
    process = start_agent(state_folder, job, tmp_path / "local")
    try:
        until(lambda: list(folder.rglob("checkpoints/up")), "the program in its image", 180)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    finally:
        process.kill()
    (state,) = folder.rglob("checkpoints/state")
    assert state.read_text() == "stop file: True"
    (trial,) = api_of(state_folder).sweeps.trials(key)
    assert (trial["state"], trial["attempts"]) == ("waiting", 1)


COUNTS = """\
#!/bin/sh
echo "in the image: $(cat /in-the-image), words: $*"
echo "halves: $(expr "${1#--steps=}" / 2)"
exit 3
"""


def test_a_program_that_is_not_python_runs_in_an_image(
    runyard: RunRunyard, state_folder: Home, image: Path, tmp_path: Path
) -> None:
    """A shell script: its words, what it prints, and its exit code, by which the trial failed."""
    folder = tmp_path / "project"
    file = write_sweep(
        folder, COUNTS, command=["sh", "${program}", "${args}"],
        parameters={"steps": {"values": [8]}},
    )  # fmt: skip
    made = json.loads(runyard("sweep", "--no-run", "--json", str(file), cwd=folder).stdout)
    job = write_job(folder, image, made["key"])
    process = start_agent(state_folder, job, tmp_path / "local disk")
    said, _ = process.communicate(timeout=180)
    (trial,) = api_of(state_folder).sweeps.trials(made["key"])
    printed = runyard("logs", trial["id"]).stdout
    assert "in the image: yes, words: --steps=8" in printed, said
    assert "halves: 4\n" in printed
    assert api_of(state_folder).run(trial["id"])["exit_code"] == 3


def test_a_sweep_is_made_from_inside_an_image(
    state_folder: Home, image: Path, tmp_path: Path
) -> None:
    """As `shifter --image=... wandb sweep config/sweep_config.yaml`; Shifter cannot be had here."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "sweep_config.yaml").write_text(
        "name: lr_sweep\nproject: from-inside\nprogram: train.py\nmethod: grid\n"
        "metric: {name: val_loss, goal: minimize}\n"
        "parameters: {lr: {values: [1E-5, 5E-5, 1E-4]}, batch_size: {values: [16, 32]}}\n"
    )
    line = ["ch-run", f"--cd={tmp_path}"]
    for mount in (*host_mounts(), str(tmp_path)):
        (image / mount.lstrip("/")).mkdir(parents=True, exist_ok=True)
        line.append(f"--bind={mount}:{mount}")
    done = subprocess.run(
        [*line, str(image), "--",
         sys.executable, "-m", "wandb", "sweep", "config/sweep_config.yaml"],
        env={**os.environ, **stock_client(state_folder), "WANDB_SILENT": "false", "USER": "kim"},
        capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (sweep,) = api_of(state_folder).sweeps.sweeps()
    assert (sweep["project"], sweep["name"], sweep["expected"]) == ("from-inside", "lr_sweep", 6)
    assert sweep["config"]["parameters"]["lr"]["values"] == [1e-5, 5e-5, 1e-4]
    # The client prints the line that works on it, as after a sweep from the host.
    assert f"/from-inside/{sweep['id']}" in done.stdout + done.stderr


def test_libraries_of_a_user_base_are_found_in_an_image(
    runyard: RunRunyard,
    state_folder: Home,
    image: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A virtual environment's Python looks into no user base.
    python = str(Path(sys.base_prefix) / "bin" / "python3")
    base = tmp_path / "more libraries"
    monkeypatch.setenv("PYTHONUSERBASE", str(base))
    ask = [python, "-c", "import site; print(site.getusersitepackages())"]
    site = Path(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip())
    assert site.is_relative_to(base)
    site.mkdir(parents=True)
    (site / "extra_library.py").write_text("word = 'from the user base'\n")
    folder = tmp_path / "project"
    program = (
        "from importlib.util import find_spec\n"
        "word = __import__('extra_library').word if find_spec('extra_library') else 'no library'\n"
        "print(open('/in-the-image').read(), word)\n"
    )
    key, _ = make_sweep(runyard, folder, program, python)
    job = write_job(folder, image, key)
    process = start_agent(state_folder, job, tmp_path / "local")
    said, _ = process.communicate(timeout=180)
    assert process.returncode == 0, said
    (trial,) = api_of(state_folder).sweeps.trials(key)
    assert "yes from the user base" in runyard("logs", trial["id"]).stdout
