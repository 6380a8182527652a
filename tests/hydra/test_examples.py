"""Hydra's own examples with the launcher, on this machine; tests/slurm runs them on a cluster."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runyard.home import Home
from tests.hydra.examples import EXAMPLES, run_example
from tests.hydra.hydra_environment import ROOT, hydra_variables
from tests.live.sweeping import api_of
from tests.tutorials.tutorial import run_tutorial

pytestmark = pytest.mark.live


@pytest.fixture(autouse=True)
def _one_server(module_home: Home) -> None:
    """All tests of this module share a server, and have folders of their own."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_unmodified(name: str, module_home: Home, tmp_path: Path) -> None:
    example = EXAMPLES[name]
    printed = run_example(example, tmp_path)
    api = api_of(module_home)
    sweeps = [api.sweeps.find(word) for word in re.findall(r"runyard status (\S+)", printed)]
    runs = [run for sweep in sweeps for run in api.runs(sweep=sweep["key"])]
    assert [run["state"] for run in runs] == ["finished"] * len(example.outputs)
    last = max(runs, key=lambda run: int(run["name"].split("-")[0]))
    assert example.printed in api.console(last)["text"]


def test_the_page_is_true(tmp_path: Path) -> None:
    page = ROOT / "docs" / "hydra.md"
    for example in EXAMPLES.values():
        assert f"`{example.folder.removeprefix('examples/')}`" in page.read_text()
    folder = tmp_path / "birds"
    folder.mkdir()
    run_tutorial(page, folder, hydra_variables())
