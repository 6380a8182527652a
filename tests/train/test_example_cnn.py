"""The CNN regressor on a laptop: tracked, cut off and resumed; with W&B's own sweeps.

On two ranks: test_example_cnn_ranks.py. On several nodes: tests/slurm/test_example_cnn.py.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from runyard.config.sweep_file import read_sweep_file
from runyard.home import Home
from runyard.save_protocol import MANIFEST
from runyard.train import Params
from tests.conftest import RunRunyard
from tests.live.programs import curves, list_runs, stock_client
from tests.train.frameworks import ROOT, program_environment
from tests.train.ranks import run_ranks
from tests.train.results import weights_of
from tests.train.warm import WarmPython

pytestmark = [pytest.mark.frameworks, pytest.mark.live]

EXAMPLE = ROOT / "examples" / "cnn_regressor" / "train.py"
LOGGED = {
    "train_loss", "grad", "val_loss", "best_val_loss", "best_epoch", "wt_norm", "learning_rate",
    "time_per_epoch", "image",
}  # fmt: skip


def test_tracked_on_one_rank_and_over_a_cut(
    runyard: RunRunyard, state_folder: Home, torch_python: Path, tmp_path: Path
) -> None:
    def train(code: int, **more: str) -> str:
        ended = runyard(
            "run", "--", str(torch_python), str(EXAMPLE),
            "--config=laptop", f"--root_dir={tmp_path}", "--max_epochs=3", "--lr=2E-3",
            "--entity=regression-team",
            env=program_environment(WANDB_RUN_ID="thesame", **more), cwd=tmp_path, timeout=600,
        )  # fmt: skip
        assert ended.returncode == code, ended.stderr
        return ended.stdout

    assert runyard("users", "teams", "add", "regression-team").returncode == 0
    stop = tmp_path / "stop"
    stop.touch()
    printed = train(75, RUNYARD_STOP_FILE=str(stop))
    folder = tmp_path / "expts" / "laptop" / "0"
    assert weights_of(folder)[0] == 1
    # The whole configuration is printed first, and kept in the run's folder with its types.
    kept = Params.load(folder / "hyperparams.yaml")
    assert set(kept) > set(Params.load(EXAMPLE.with_name("config.yaml"), "laptop"))
    assert str(kept) in printed.partition("epoch 1:")[0]
    assert "0.001 million parameters on 1 x " in printed
    assert "going on at step 1" in train(0)

    (run,) = list_runs(runyard)
    assert run["state"] == "finished"
    summary: dict[str, Any] = run["summary"]
    assert set(summary) >= LOGGED
    # Each epoch once, as if it had not been cut off.
    assert curves(state_folder, "thesame")["val_loss"]["steps"] == [1, 2, 3]
    # Nothing can be learnt but the mean: from 0.33 towards 1/12.
    assert 1 / 12 < summary["val_loss"] < 0.2
    assert (summary["progress/step"], summary["progress/total"]) == (3, 3)
    assert run["config"]["lr"] == 0.002
    assert run["config"]["train_path"] is None
    # Folder, configuration, name, group, project and entity are what W&B was started with.
    assert (run["name"], run["group"], run["project"]) == ("laptop-0", "laptop", "cnn-regressor")
    assert run["entity"] == "regression-team"
    assert run["config"] == kept.plain()
    assert (kept.lr, kept.name, kept.train_path) == (0.002, "laptop-0", None)
    assert set(kept.versions) == {"torch", "commit", "branch"}
    assert kept.versions.torch.startswith("2.")
    assert len(list((folder / "wandb").glob("run-*-thesame"))) == 2
    assert weights_of(folder)[0] == 3
    manifest = json.loads((folder / "checkpoints" / "latest" / MANIFEST).read_text())
    assert set(manifest["parts"]) == {"model", "optimizer", "schedule", "iteration"}
    assert (manifest["step"], manifest["wandb"]["id"]) == (3, "thesame")
    assert manifest["best"][0] == summary["best_val_loss"]
    assert manifest["files"]["_random.tree"]


@pytest.mark.parametrize(
    ("key", "known"),
    [("model", "cnn"), ("loss_func", "mse, l1"), ("optimizer", "adam, sgd"),
     ("scheduler", "none, cosine, plateau")],
)  # fmt: skip
def test_an_unknown_part_is_refused(warm: WarmPython, tmp_path: Path, key: str, known: str) -> None:
    words = ["--config=laptop", "--log_to_wandb=False", f"--root_dir={tmp_path}", f"--{key}=vit"]
    ended = warm.run(EXAMPLE, *words)
    assert ended.returncode == 1
    assert f"{key}: vit is unknown; there is {known}" in ended.stderr


def test_the_configured_seed_is_used(warm: WarmPython, tmp_path: Path) -> None:
    def weights(root: str, seed: int) -> tuple[int, str]:
        words = ["--config=laptop", "--log_to_wandb=False", "--max_epochs=1", f"--seed={seed}"]
        ended = warm.run(EXAMPLE, *words, f"--root_dir={tmp_path / root}")
        assert ended.returncode == 0, ended.stderr
        return weights_of(tmp_path / root / "expts" / "laptop" / "0")

    first = weights("a", 5)
    assert weights("b", 5) == first
    assert weights("c", 6) != first


OWN_MODEL = """
from torch import nn
class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.own_weight = nn.Parameter(torch.zeros(()))
    def forward(self, images):
        return images * 0 + self.own_weight
MODELS["own"] = lambda params: Own()
"""
OWN_DATA = """
import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
def build_loader(params, ranks, part):
    pairs = TensorDataset(torch.zeros(8, 1, 2, 2), torch.full((8, 1, 2, 2), 3.0))
    return DataLoader(pairs, batch_size=4, sampler=DistributedSampler(pairs, 1, 0))
"""
OWN_CONFIG = """
mine: {model: own, loss_func: l1, optimizer: sgd, scheduler: none, lr: 1E-1, max_epochs: 1,
       seed: 1, log_to_screen: yes, log_to_wandb: no, log_versions: no, save_checkpoint: yes}
"""


def test_model_data_and_configuration_are_swapped_without_touching_the_trainer(
    warm: WarmPython, tmp_path: Path
) -> None:
    """As the README says: the user's own model.py, data.py and YAML file; the rest as it is."""
    project = tmp_path / "project"
    shutil.copytree(EXAMPLE.parent, project)
    (project / "model.py").write_text(EXAMPLE.with_name("model.py").read_text() + OWN_MODEL)
    (project / "data.py").write_text(OWN_DATA)
    (project / "configs").mkdir()
    (project / "configs" / "mine.yaml").write_text(OWN_CONFIG)
    ended = warm.run(
        project / "train.py", f"--yaml_config={project}/configs/mine.yaml", "--config=mine",
        f"--root_dir={tmp_path}",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    # Two steps towards 3, of 0.1 and of 0.1 + 0.9 * 0.1.
    assert "done: val_loss 2.7" in ended.stdout
    assert weights_of(tmp_path / "expts" / "mine" / "0")[0] == 1


def test_the_options_have_their_defaults(
    warm: WarmPython, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The configuration beside the program, the current folder, run 0, and no sweep."""
    monkeypatch.chdir(tmp_path)
    short = ("--config=laptop", "--max_epochs=1", "--log_to_wandb=False")
    ended = warm.run(EXAMPLE, *short)
    assert ended.returncode == 0, ended.stderr
    assert weights_of(tmp_path / "expts" / "laptop" / "0")[0] == 1
    own = tmp_path / "configs" / "test.yaml"
    own.parent.mkdir()
    own.write_text(EXAMPLE.with_name("config.yaml").read_text() + "  lr: 7E-4\n")
    words = (*short, "--yaml_config=configs/test.yaml", "--root_dir=else", "--run_num=3")
    ended = warm.run(EXAMPLE, *words)
    assert ended.returncode == 0, ended.stderr
    assert Params.load("else/expts/laptop/3/hyperparams.yaml").lr == 7e-4
    missing = warm.run(EXAMPLE, "--config=no-such-section")
    assert missing.returncode == 1
    assert "has no section 'no-such-section'" in missing.stderr


def test_a_checkpoint_of_a_gpu_goes_on_where_there_is_none(
    warm: WarmPython, tmp_path: Path
) -> None:
    """It was written on an H200 by this example, and stands here for a GPU that CI has not."""
    recorded = Path(__file__).parent / "recorded" / "checkpoint-of-an-h200"
    checkpoints = tmp_path / "expts" / "laptop" / "0" / "checkpoints"
    shutil.copytree(recorded, checkpoints / "0000002-step-2")
    words = ["--config=laptop", "--log_to_wandb=False", "--max_epochs=3", f"--root_dir={tmp_path}"]
    ended = warm.run(EXAMPLE, *words)
    assert ended.returncode == 0, ended.stderr
    assert "going on at step 2 from" in ended.stdout
    # As the GPU itself had it after a third epoch.
    (loss,) = re.findall(r"done: val_loss (\S+)", ended.stdout)
    assert float(loss) == pytest.approx(0.138288, abs=1e-5)


def test_a_batch_size_that_does_not_divide_is_told() -> None:
    from runyard import train
    from runyard.train.placement import Placement

    ranks = train.Ranks(Placement(rank=1, size=4))
    assert ranks.split(32) == 8
    with pytest.raises(train.TrainError, match=r"30 cannot be split over 4 ranks\n.*28 or 32"):
        ranks.split(30)


def test_the_default_configuration_is_beside_the_program() -> None:
    beside = EXAMPLE.with_name("config.yaml")
    test, test2 = (Params.load(beside, section) for section in ("test", "test2"))
    assert test.lr == 0.001
    assert test2 == test | {"batch_size": 16}


BUILT = """
import sys
sys.path.insert(0, sys.argv[1])
import torch
from model import build_optimizer, build_schedule
from torch.optim.lr_scheduler import ReduceLROnPlateau
from runyard import train

given = train.Params.load(sys.argv[1] + "/config.yaml", "laptop")
for name, optimizer, schedule in (
    ("adam", "Adam", "cosine"), ("sgd", "SGD", "plateau"), ("adam", "Adam", None)
):
    params = given.copy().merge({"optimizer": name, "scheduler": schedule})
    made = build_optimizer(params, torch.nn.Linear(1, 1))
    assert type(made).__name__ == optimizer
    assert made.param_groups[0].get("momentum", 0.9) == 0.9
    plan = build_schedule(params, made)
    rates = []
    for _ in range(12):
        made.step()
        plan.step(1.0) if isinstance(plan, ReduceLROnPlateau) else plan.step()
        rates.append(made.param_groups[0]["lr"])
    print(schedule, rates[0] == given.lr, rates[-1] == given.lr)
"""


def test_optimisers_and_schedules_are_built_and_take_steps(
    warm: WarmPython, tmp_path: Path
) -> None:
    program = tmp_path / "built.py"
    program.write_text(BUILT)
    ended = warm.run(program, str(EXAMPLE.parent))
    assert ended.returncode == 0, ended.stderr
    # Cosine falls from the first step, plateau when nothing has become better for a while.
    assert ended.stdout.splitlines() == [
        "cosine False False", "plateau True False", "None True True",
    ]  # fmt: skip


STEPPED = """
import sys, torch
state = torch.load(sys.argv[1], weights_only=True)
print(state["last_epoch"], state.get("best"))
"""


@pytest.mark.parametrize("schedule", ["plateau", "cosine"])
def test_the_trainer_steps_its_schedule(warm: WarmPython, tmp_path: Path, schedule: str) -> None:
    program = tmp_path / "stepped.py"
    program.write_text(STEPPED)
    ended = warm.run(
        EXAMPLE, "--config=laptop", "--log_to_wandb=False", "--max_epochs=1",
        f"--scheduler={schedule}", f"--root_dir={tmp_path}",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    (loss,) = re.findall(r"done: val_loss (\S+)", ended.stdout)
    state = tmp_path / "expts" / "laptop" / "0" / "checkpoints" / "latest" / "schedule.pt"
    best = loss if schedule == "plateau" else "None"
    assert warm.run(program, str(state)).stdout == f"1 {best}\n"


def test_the_sweep_file_is_a_grid_of_six() -> None:
    read = read_sweep_file(EXAMPLE.with_name("sweep.yaml"))
    assert (read.data["method"], read.data["project"]) == ("grid", "cnn-regressor")
    assert read.data["metric"] == {"name": "val_loss", "goal": "minimize"}
    values = {name: entry["values"] for name, entry in read.data["parameters"].items()}
    assert values == {"lr": [1e-5, 5e-5, 1e-4], "batch_size": [16, 32]}


def test_launches_take_one_trial_each_until_none_is_left(
    runyard: RunRunyard, state_folder: Home, warm: WarmPython, torch_python: Path, tmp_path: Path
) -> None:
    """W&B's own way: the sweep's id is an option of the program, and rank 0 asks for the trial."""
    file = EXAMPLE.with_name("sweep.yaml")
    made = runyard("sweep", str(file), "--no-run", "--json", "--set", "batch_size=16")
    assert made.returncode == 0, made.stderr
    sweep = json.loads(made.stdout)
    assert (sweep["project"], sweep["expected"]) == ("cnn-regressor", 3)
    words = [
        "--config=laptop", "--max_epochs=1", f"--root_dir={tmp_path}",
        f"--sweep_id={sweep['entity']}/cnn-regressor/{sweep['id']}",
    ]  # fmt: skip
    environment = stock_client(state_folder)
    first = warm.run(EXAMPLE, *words, **environment)
    assert first.returncode == 0, first.stderr
    assert len(list_runs(runyard)) == 1
    beside = warm.start(EXAMPLE, words, **environment)
    together = run_ranks(torch_python, EXAMPLE, words, **environment)
    assert [rank.returncode for rank in together] == [0, 0], together[0].stderr
    second = beside.end()
    assert second.returncode == 0, second.stderr
    for ended in (first, second):
        assert "done: val_loss" in ended.stdout
    last = warm.run(EXAMPLE, *words, **environment)
    assert last.returncode == 0, last.stderr
    assert "has no trial left" in last.stdout
    runs = list_runs(runyard)
    assert sorted(run["config"]["lr"] for run in runs) == [1e-5, 5e-5, 1e-4]
    # The trained model is found from the browser: the run's name is the folder's.
    folder = tmp_path / "sweeps" / sweep["id"]
    assert {run["name"] for run in runs} == {place.name for place in folder.iterdir()}
    for run in runs:
        assert weights_of(folder / run["name"])[0] == 1
        assert list((folder / run["name"] / "wandb").glob(f"run-*-{run['id']}"))
        assert run["name"].startswith("laptop_")
