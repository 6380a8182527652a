"""The keywords of `runyard.submit` and its like: read as runyard.yaml reads them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import runyard
from runyard.config.request import Resources as AskedResources
from runyard.errors import UsageError
from runyard.reading.records import settings_of
from runyard.scripting.options import RESOURCES, read_options


def test_importing_it_loads_nothing_else() -> None:
    code = "import sys, runyard; print(sorted(m for m in sys.modules if m.startswith('runyard')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['runyard', 'runyard.version']\n"


def test_each_name_is_found_when_it_is_wanted() -> None:
    assert set(runyard.__all__) <= set(dir(runyard))
    assert set(runyard._WHERE) == set(runyard.__all__) - {"__version__"}
    for name in runyard.__all__:
        assert getattr(runyard, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'submitt'"):
        _ = runyard.submitt


def test_every_resource_of_the_file_has_a_keyword() -> None:
    assert set(settings_of(AskedResources)) == RESOURCES


def test_values_are_read_as_in_the_file(tmp_path: Path) -> None:
    wanted = read_options(
        {
            "on": "slurm",
            "gpus": 2,
            "time": "1h30m",
            "memory": "16G",
            "exclude": ["n1", "n2"],
            "partition": None,
            "project": "birds",
            "folder": tmp_path,
            "chain": 3,
            "settings": {
                "environment.modules": ["cuda"],
                "environment": {"variables": {"A": "1"}, "kind": "venv"},
            },
        }
    )
    flags = wanted.project.flags
    assert (wanted.on, wanted.seconds, wanted.folder) == ("slurm", 5400.0, tmp_path.resolve())
    assert (flags["resources.gpus"], flags["resources.memory"]) == (2, 16384)
    assert flags["resources.exclude"] == ("n1", "n2")
    assert flags["resources.partition"] is None
    assert flags["environment.modules"] == ("cuda",)
    assert flags["environment.variables"] == {"A": "1"}
    assert (flags["environment.kind"], flags["agents.chain"]) == ("venv", 3)
    assert flags.given["resources.time"].option == "--time 1h30m"
    assert (wanted.project.project, flags["tracking.project"]) == ("birds", "birds")


@pytest.mark.parametrize(
    ("options", "what", "mend"),
    [
        ({"gpu": 1}, "no option 'gpu'", "did you mean gpus"),
        ({"time": 60}, "time=60: a length of time says its unit", "60m"),
        ({"gpus": "many"}, "gpus='many'", "whole number"),
        ({"on": "moon"}, "on='moon'", "here or slurm"),
        ({"settings": {"resources.gpu": 1}}, "no setting", "did you mean resources.gpus"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, object], what: str, mend: str) -> None:
    with pytest.raises(UsageError, match=what) as refused:
        read_options(options)
    assert mend in (refused.value.mend or "")


def test_a_keyword_of_two_meanings_is_refused() -> None:
    def wait_for(time: float) -> float:
        return time

    with pytest.raises(UsageError, match="time= is an option") as refused:
        runyard.submit(wait_for, time="1h")
    assert "functools.partial(wait_for, time=...)" in (refused.value.mend or "")


def test_arguments_that_do_not_fit_are_refused_before_anything_is_made() -> None:
    with pytest.raises(TypeError, match="missing a required argument: 'b'"):
        runyard.submit(lambda a, b: a + b, 1, on="here")


def test_a_line_of_shell_is_no_program() -> None:
    with pytest.raises(UsageError) as refused:
        runyard.submit("python train.py", on="here")
    assert refused.value.mend == "runyard.submit(['python', 'train.py'])"


def test_a_sweep_has_the_same_places() -> None:
    with pytest.raises(UsageError, match="on='moon' is no place to run"):
        runyard.sweep({}, on="moon")
