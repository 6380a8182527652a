"""The tutorials that submit, on a real Slurm cluster."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.hydra.hydra_environment import hydra_variables
from tests.live.sweeping import with_python
from tests.slurm.cluster import SlurmCluster
from tests.slurm.yard import open_yard
from tests.tutorials.test_on_a_laptop import NAMES as ON_A_LAPTOP
from tests.tutorials.test_on_a_laptop import TUTORIALS
from tests.tutorials.tutorial import run_tutorial

pytestmark = pytest.mark.slurm


@pytest.mark.parametrize(
    "name", sorted({path.stem for path in TUTORIALS.glob("*.md")} - set(ON_A_LAPTOP))
)
def test_a_tutorial_is_true(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slurm_cluster: SlurmCluster
) -> None:
    with open_yard(tmp_path, monkeypatch, slurm_cluster) as yard:
        folder = yard.project.with_name("birds")
        folder.mkdir()
        python = with_python()["PATH"].partition(":")[0]
        slurm = slurm_cluster.env
        path = f"{python}:{slurm['PATH']}"
        slurm_variables = {"SLURM_CONF": slurm["SLURM_CONF"], "PATH": path}
        environ = {**os.environ, **slurm_variables}
        if "hydra" in name:
            environ = hydra_variables(**slurm_variables)
        run_tutorial(TUTORIALS / f"{name}.md", folder, environ)
