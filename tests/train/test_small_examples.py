"""The small examples as their READMEs say, and what every example has."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.clusters.load import load_profile
from runyard.config.project_file import read_project
from runyard.config.sweep_file import read_sweep_file
from runyard.home import Home
from tests.conftest import RunRunyard
from tests.environments import Missing, skip_or_fail
from tests.live.programs import curves, list_runs, stock_client
from tests.live.sweeping import with_python
from tests.train.frameworks import ROOT, ensure_framework, program_environment
from tests.train.warm import WarmPython

EXAMPLES = ROOT / "examples"
pytestmark = pytest.mark.live
ALL = pytest.mark.skipif(
    os.environ.get("RUNYARD_ALL_EXAMPLES") != "1",
    reason="RUNYARD_ALL_EXAMPLES=1 installs packages for it",
)
FOLDERS = sorted(file.parent.name for file in EXAMPLES.glob("*/README.md"))


@pytest.fixture
def farm(tmp_path: Path) -> Path:
    folder = shutil.copytree(EXAMPLES / "gridworld", tmp_path / "gridworld")
    tasks = folder / "tasks.txt"
    tasks.write_text(tasks.read_text().replace("python ", f"{sys.executable} "))
    return folder


def test_the_stock_script_has_nothing_of_ours() -> None:
    text = (EXAMPLES / "spirals" / "train.py").read_text()
    assert "runyard" not in text
    assert set(re.findall(r"^(?:import|from) (\w+)", text, re.M)) == {
        "argparse", "itertools", "numpy", "wandb",
    }  # fmt: skip


def test_a_farm_of_reinforcement_learning(runyard: RunRunyard, farm: Path) -> None:
    ended = runyard(
        "farm", "tasks.txt", "-j", "3", "--metric", "mean_steps", "--goal", "minimize", "-q",
        cwd=farm, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    runs = list_runs(runyard)
    assert len(runs) == 6
    # By chance the goal is 400 steps away or more; who has learnt needs a tenth of it.
    assert max(run["summary"]["mean_steps"] for run in runs) < 100
    assert {run["config"]["alpha"] for run in runs} == {0.1, 0.5}


@pytest.mark.frameworks
def test_lightning_cut_off_after_an_epoch_ends_like_an_uncut_run(
    warm: WarmPython, tmp_path: Path
) -> None:
    warm.load("lightning")
    stop = tmp_path / "stop"
    stop.touch()

    def train(folder: str, **more: str) -> int:
        place = {"RUNYARD_CHECKPOINT_DIR": str(tmp_path / folder), "WANDB_MODE": "disabled"}
        program = EXAMPLES / "lightning" / "train.py"
        ended = warm.run(program, "--epochs", "2", **place, **more)
        assert ended.returncode in (0, 75), ended.stderr
        return ended.returncode

    assert train("uncut") == 0
    assert [train("cut", RUNYARD_STOP_FILE=str(stop)) for _ in range(2)] == [75, 0]
    compared = warm.run(
        Path(__file__).parent / "programs" / "same_weights.py",
        str(tmp_path / "uncut" / "last.ckpt"), str(tmp_path / "cut" / "last.ckpt"),
    )  # fmt: skip
    assert compared.stdout == "same\n", compared.stdout + compared.stderr


@pytest.mark.frameworks
def test_lightning_is_tracked(runyard: RunRunyard, torch_python: Path, tmp_path: Path) -> None:
    ended = runyard(
        "run", "-q", "--", str(torch_python), str(EXAMPLES / "lightning" / "train.py"),
        "--epochs", "2",
        env=program_environment(), cwd=tmp_path, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    (run,) = list_runs(runyard)
    assert run["config"]["hidden"] == 32
    assert run["summary"]["val_loss"] < 8  # The variance of the target.
    assert run["summary"]["epoch"] == 1


@pytest.mark.parametrize("name", FOLDERS)
def test_an_example_says_all_that_it_needs(name: str) -> None:
    folder = EXAMPLES / name
    imported = {
        word.partition(".")[0]
        for file in folder.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        for word in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import)
            else [node.module or ""] if isinstance(node, ast.ImportFrom)
            else []
        )
    }  # fmt: skip
    own = {file.stem for file in folder.glob("*.py")} | {"runyard"}
    needed = set((folder / "requirements.txt").read_text().replace("pillow", "PIL").split())
    assert imported - own - set(sys.stdlib_module_names) <= needed
    for file in folder.glob("s*.yaml"):
        assert read_sweep_file(file).warnings == ()
    if (folder / "runyard.yaml").exists():
        request = read_project(folder, profile=load_profile("generic"))
        assert request.warnings == ()
        assert request.command or request.sweep_file


def test_the_workloads_have_all_files() -> None:
    for name in ("cnn_regressor", "neural_ode", "mnist", "fashion_mnist"):
        files = {file.name for file in (EXAMPLES / name).iterdir()}
        assert files >= {"README.md", "requirements.txt", "runyard.yaml", "sweep.yaml"}


def test_bayes_with_early_stopping_over_eight_parameters() -> None:
    read = read_sweep_file(EXAMPLES / "fashion_mnist" / "sweep.yaml")
    assert (read.data["method"], len(read.data["parameters"])) == ("bayes", 8)
    assert read.data["early_terminate"] == {
        "type": "hyperband", "s": 2, "eta": 3, "max_iter": 27,
    }  # fmt: skip


def with_keras(tmp_path: Path) -> Path:
    """The example beside a sweep file that calls the Python which has Keras."""
    folder = shutil.copytree(EXAMPLES / "fashion_mnist", tmp_path / "fashion_mnist")
    try:
        python = ensure_framework("keras")
    except Missing as missing:
        skip_or_fail(str(missing))
    file = folder / "sweep.yaml"
    command = json.dumps([str(python), "${program}", "--made_up", "${args}"])
    file.write_text(file.read_text().replace("method:", f"command: {command}\nmethod:"))
    return folder


@pytest.mark.frameworks
def test_a_trial_of_keras_is_tracked_with_its_eight_settings(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    folder = with_keras(tmp_path)
    ended = runyard(
        "sweep", "sweep.yaml", "--run-cap", "1", "--set", "epochs=2", "--set", "layer_1_size=16",
        cwd=folder, env=program_environment(), timeout=600,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    (run,) = list_runs(runyard)
    parameters = read_sweep_file(folder / "sweep.yaml").data["parameters"]
    assert set(run["config"]) >= set(parameters)
    assert run["config"]["layer_2_size"] in (32, 64, 128)
    assert 64 <= run["config"]["hidden_layer_size"] <= 512
    assert run["config"]["hidden_layer_size"] % 32 == 0
    for name in ("dropout", "learn_rate", "momentum", "decay"):
        entry = parameters[name]
        assert float(entry["min"]) <= run["config"][name] <= float(entry["max"])
    logged = curves(state_folder, run["id"])
    for name in ("loss", "accuracy", "val_loss", "val_accuracy"):
        assert len(logged[name]["values"]) == 2


SLOWLY = """\
import os, runpy, time
os.environ["KERAS_BACKEND"] = "torch"
import keras
ended = keras.callbacks.CallbackList.on_epoch_end
def pause(self, epoch, logs=None):
    ended(self, epoch, logs)
    time.sleep(1)
keras.callbacks.CallbackList.on_epoch_end = pause
runpy.run_path("train.py", run_name="__main__")
"""


@ALL
@pytest.mark.frameworks
def test_keras_is_stopped_early(runyard: RunRunyard, state_folder: Home, tmp_path: Path) -> None:
    """Its 27 epochs take seconds here: each gets a pause, and rows and stops travel quickly."""
    folder = with_keras(tmp_path)
    (folder / "slowly.py").write_text(SLOWLY)
    file = folder / "sweep.yaml"
    file.write_text(file.read_text().replace('"${program}"', '"slowly.py"'))
    quick = {"WANDB_X_FILE_STREAM_TRANSMIT_INTERVAL": "0.5", "RUNYARD_LEASE_SECONDS": "6"}
    ended = runyard(
        "sweep", "sweep.yaml", "-j", "1", "--run-cap", "5", "--set", "layer_1_size=8",
        "--set", "layer_2_size=8", cwd=folder, env=program_environment(**quick), timeout=1800,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    runs = list_runs(runyard)
    assert len(runs) == 5
    epochs = sorted(run["summary"]["epoch"] + 1 for run in runs)
    assert epochs[-1] == 27
    assert epochs[0] < 27  # Of five, the worst does not reach the end.


@pytest.mark.frameworks
def test_mnist_logs_each_batch_and_the_epoch(
    runyard: RunRunyard, state_folder: Home, warm: WarmPython, tmp_path: Path
) -> None:
    words = ("--made_up", "--optimizer=sgd", "--fc_layer_size=256", "--learning_rate=0.05")
    environment = {**stock_client(state_folder), "WANDB_DIR": str(tmp_path)}
    ended = warm.run(EXAMPLES / "mnist" / "train.py", *words, **environment)
    assert ended.returncode == 0, ended.stderr
    assert f"{784 * 256 + 256 + 256 * 10 + 10} parameters" in ended.stdout
    (run,) = list_runs(runyard)
    assert (run["project"], run["config"]["dropout"]) == ("mnist", 0.3)
    logged = curves(state_folder, run["id"])
    batches = [float(value or 0) for value in logged["batch loss"]["values"]]
    assert len(batches) == 13  # Every fifth of 4,000 images, 64 at a time.
    assert batches[-1] < batches[0] / 2
    assert logged["loss"]["values"] == [pytest.approx(sum(batches) / len(batches))]


BUILT = """
import gzip, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import images
import train

print([repr(layer) for layer in train.build_network(512, 0.4)])
network = train.build_network(128, 0.3)
for name in ("adam", "sgd"):
    optimizer = train.build_optimizer(network, name, 0.01)
    group = optimizer.param_groups[0]
    print(type(optimizer).__name__, group["lr"], group.get("momentum"))
# MNIST's own format: a header, then a byte for each pixel or label.
data = Path(sys.argv[2])
pixels, labels = (data / name for name in images.FILES)
pixels.write_bytes(gzip.compress(bytes(16) + bytes([0, 255]) * 784))
labels.write_bytes(gzip.compress(bytes(8) + bytes([3, 9])))
loaded, digits = images.load(data)
print(loaded.shape, loaded.max(), digits.tolist())
"""


@pytest.mark.frameworks
def test_mnist_s_model_optimisers_and_data(warm: WarmPython, tmp_path: Path) -> None:
    program = tmp_path / "built.py"
    program.write_text(BUILT)
    (tmp_path / "data").mkdir()
    ended = warm.run(program, str(EXAMPLES / "mnist"), str(tmp_path / "data"))
    assert ended.returncode == 0, ended.stderr
    layers, *rest = ended.stdout.splitlines()
    assert ast.literal_eval(layers) == [
        "Linear(in_features=784, out_features=512, bias=True)", "ReLU()",
        "Dropout(p=0.4, inplace=False)", "Linear(in_features=512, out_features=10, bias=True)",
        "LogSoftmax(dim=1)",
    ]  # fmt: skip
    assert rest == ["Adam 0.01 None", "SGD 0.01 0.9", "(2, 784) 1.0 [3, 9]"]


def test_the_mnist_sweep_is_a_random_search(runyard: RunRunyard, tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLES / "mnist", tmp_path / "mnist")
    config = read_sweep_file(folder / "sweep.yaml").data
    assert (config["method"], config["run_cap"]) == ("random", 20)
    kinds = {name: entry.get("distribution") for name, entry in config["parameters"].items()}
    assert (kinds["learning_rate"], kinds["batch_size"]) == ("uniform", "q_log_uniform_values")
    file = folder / "train.py"
    file.write_text("pass  # optimizer fc_layer_size dropout learning_rate batch_size epochs\n")
    words = ("sweep", "sweep.yaml", "-j", "4", "--seed", "1")
    ended = runyard(*words, cwd=folder, env=with_python())
    assert ended.returncode == 0, ended.stderr
    drawn = [run["config"] for run in list_runs(runyard)]
    assert len(drawn) == 20
    assert {setting["optimizer"] for setting in drawn} == {"adam", "sgd"}
    assert {setting["fc_layer_size"] for setting in drawn} == {128, 256, 512}
    assert {setting["dropout"] for setting in drawn} == {0.3, 0.4, 0.5}
    assert len({setting["learning_rate"] for setting in drawn}) == 20
    assert all(setting["batch_size"] % 8 == 0 for setting in drawn)
    assert all(32 <= setting["batch_size"] <= 256 for setting in drawn)


def test_one_command_submits_the_mnist_example(runyard: RunRunyard, tmp_path: Path) -> None:
    """A stand-in for conda, which cannot be had here: what a submission looks for."""
    folder = shutil.copytree(EXAMPLES / "mnist", tmp_path / "mnist")
    conda = tmp_path / "home" / "miniforge3"
    (conda / "etc/profile.d").mkdir(parents=True)
    (conda / "etc/profile.d/conda.sh").write_text("conda() { true; }\n")
    (conda / "envs/mnist/conda-meta").mkdir(parents=True)
    (conda / "envs/mnist/bin").mkdir()
    (conda / "envs/mnist/bin/python").symlink_to(sys.executable)
    shown = runyard("submit", "--dry-run", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    # The sweep's twenty trials, four at a time, each with a GPU.
    for option in ("--array=1-20%4", "--gres=gpu:1", "--cpus-per-task=2", "--time=0-00:30:00"):
        assert f"#SBATCH {option}" in lines
    (activated,) = [turn for turn, line in enumerate(lines) if "conda activate" in line]
    assert "mnist" in lines[activated]
    (begun,) = [turn for turn, line in enumerate(lines) if line.startswith("agent=(")]
    assert activated < begun


def test_set_up_says_which_examples_there_are() -> None:
    ended = subprocess.run([EXAMPLES / "set-up", "nothing"], capture_output=True, text=True)
    assert ended.returncode == 2
    assert set(ended.stderr.split()) >= set(FOLDERS)


def set_up(place: Path, name: str) -> Path:
    """The script, as it stands in a checkout, beside an example; the Python that it made."""
    shutil.copy(EXAMPLES / "set-up", place)
    for _ in range(2):  # It is safe to run again.
        ended = subprocess.run(
            [place / "set-up", name], env={**os.environ, **with_python()},
            capture_output=True, text=True, timeout=900,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
    return place / name / ".venv" / "bin" / "python"


def test_set_up_makes_the_environment_and_logs_in(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    """An example with a small requirement: wandb and its own take minutes on a busy machine."""
    example = tmp_path / "examples" / "tiny"
    example.mkdir(parents=True)
    (example / "requirements.txt").write_text("six\n")
    (example / "train.py").write_text("import six\nprint('at', six.__file__)\n")
    python = set_up(tmp_path / "examples", "tiny")
    done = runyard("run", "-q", "--", str(python), "train.py", cwd=example)
    assert done.returncode == 0, done.stderr
    assert f"at {example / '.venv'}/" in done.stdout
    # What it stored is in netrc, for the server in use, and works.
    checked = json.loads(runyard("login", "--check", "--json").stdout)
    assert checked["works"], checked
    assert checked["source"].startswith(str(tmp_path / "home" / ".netrc"))


@ALL
def test_set_up_makes_an_examples_own_environment(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    example = shutil.copytree(EXAMPLES / "gridworld", tmp_path / "examples" / "gridworld")
    python = set_up(tmp_path / "examples", "gridworld")
    words = (str(python), "q_learning.py", "--seed", "1")
    done = runyard("run", "-q", "--", *words, cwd=example)
    assert done.returncode == 0, done.stderr
    (run,) = list_runs(runyard)
    assert (run["state"], "mean_steps" in run["summary"]) == ("finished", True)
