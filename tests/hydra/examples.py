"""Which of Hydra's own examples are run, and what must be in their folders afterwards."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.hydra.hydra_environment import hydra_examples, run_hydra


@dataclass(frozen=True)
class Example:
    """A program of Hydra's repository, unmodified."""

    folder: str
    overrides: tuple[str, ...]
    outputs: tuple[str, ...]
    """The folders of its jobs, below `hydra.sweep.dir`."""
    printed: str
    """By the last job."""
    program: str = "my_app.py"
    plugin: str | None = None
    """The folder of a plugin that it needs."""


BASIC = "examples/tutorials/basic"
EXAMPLES = {
    "sweep": Example(
        f"{BASIC}/running_your_hydra_app/5_basic_sweep",
        (),
        ("0", "1", "2", "3"),
        "driver=postgresql, timeout=10",
    ),
    "composition": Example(
        f"{BASIC}/your_first_hydra_app/6_composition",
        ("db=mysql,postgresql", "schema=warehouse,support"),
        ("0", "1", "2", "3"),
        "driver: postgresql",
    ),
    "structured": Example(
        "examples/tutorials/structured_configs/5.2_structured_config_schema_different_config_group",
        ("db=mysql,postgresql",),
        ("0", "1"),
        "driver: postgresql",
    ),
    "dirname": Example(
        "examples/configure_hydra/job_override_dirname",
        ("learning_rate=0.1,0.01", "seed=1,2", "hydra.job.chdir=true"),
        ("learning_rate=0.1/seed=1", "learning_rate=0.1/seed=2",
         "learning_rate=0.01/seed=1", "learning_rate=0.01/seed=2"),
        "out/learning_rate=0.01/seed=2",
    ),
    "experiments": Example(
        "examples/patterns/configuring_experiments",
        ("+experiment=aplite,nglite",),
        ("0", "1"),
        "name: nginx",
    ),
    "launcher": Example(
        "examples/plugins/example_launcher_plugin/example",
        ("db=mysql,postgresql",),
        ("0", "1"),
        "driver: postgresql",
    ),
    "sweeper": Example(
        "examples/plugins/example_sweeper_plugin/example",
        ("db=mysql,postgresql", "hydra.sweeper.max_batch_size=1"),
        ("0", "1"),
        "driver: postgresql",
        plugin="examples/plugins/example_sweeper_plugin",
    ),
    "optuna": Example(
        "plugins/hydra_optuna_sweeper/example",
        ("hydra.sweeper.n_trials=4", "hydra.sweeper.n_jobs=2"),
        ("0", "1", "2", "3"),
        "",
        program="sphere.py",
    ),
}  # fmt: skip


def run_example(example: Example, folder: Path, *words: str, **variables: str) -> str:
    """Run it in a copy of its folder; what the multirun printed. Its jobs' folders are there."""
    source, project = hydra_examples(), folder / "example"
    shutil.copytree(source / example.folder, project)
    if example.plugin is not None:
        variables["PYTHONPATH"] = str(source / example.plugin)
    overrides = ["hydra.sweep.dir=out", *example.overrides, *words]
    done = run_hydra(project / example.program, *overrides, folder=project, **variables)
    assert done.returncode == 0, done.stderr
    for output in example.outputs:
        assert (project / "out" / output / ".hydra" / "config.yaml").exists(), output
    assert done.stdout.count("#") >= len(example.outputs)
    return done.stdout
