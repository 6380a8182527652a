"""What an environment is built of, with which steps and under which name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from runyard.clusters.profile import Profile, Script, Software
from runyard.config.request import Environment
from runyard.errors import ConfigError
from runyard.launch.builds import Build, files_for, plan_build

PROFILE = Profile()
SITE = replace(
    PROFILE, script=Script(modules=("python/3.11", "cuda/12")), software=Software(wheels="site")
)
PIPFILE = """\
[packages]
torch = "==2.1.0"
numpy = "*"
wandb = {version = ">=0.16", extras = ["media"]}
ours = {git = "https://example.org/ours.git", ref = "v2"}
"""
LOCK = json.dumps(
    {
        "default": {
            "torch": {"version": "==2.1.0", "hashes": ["sha256:0"]},
            "tomli": {"version": "==2.0.1", "markers": "python_version < '3.11'"},
        }
    }
)


def planned(kind: str, files: dict[str, str], profile: Profile = PROFILE, **more: str) -> Build:
    return plan_build(
        Environment(kind=kind, build=True, **more),  # type: ignore[arg-type]
        profile, name="my project", project=Path("/p/my project"), files=files,
        into=Path("/state/environments"), conda="/opt/miniforge3",
    )  # fmt: skip


def test_a_pipfile_is_preferred_and_its_lock_is_taken_as_it_stands() -> None:
    files = {"requirements.txt": "six\n", "Pipfile": PIPFILE, "Pipfile.lock": LOCK}
    build = planned("venv", files)
    assert build.source == "Pipfile"
    assert build.wanted == "torch==2.1.0\ntomli==2.0.1 ; python_version < '3.11'\n"
    unlocked = planned("venv", {"Pipfile": PIPFILE})
    assert unlocked.wanted == (
        "torch==2.1.0\nnumpy\nwandb[media]>=0.16\nours @ git+https://example.org/ours.git@v2\n"
    )


def test_with_the_sites_own_wheels_nothing_is_downloaded_and_versions_are_free() -> None:
    build = planned("venv", {"Pipfile": PIPFILE, "Pipfile.lock": LOCK}, SITE)
    assert "virtualenv --no-download" in build.script
    assert build.script.count("--no-index") == 2
    assert "module load python/3.11 cuda/12" in build.script
    assert "tomli" not in (build.wanted or "")
    pinned = "torch==2.1.0 ; python_version > '3'\n--no-binary x\nnumpy>=1\n"
    assert planned("venv", {"requirements.txt": pinned}, SITE).wanted == (
        "torch ; python_version > '3'\n--no-binary x\nnumpy>=1\n"
    )


def test_every_kind_has_its_files_and_steps() -> None:
    project = '[project]\nname = "x"\ndependencies = ["six>=1"]\n'
    told = {
        "venv": planned("venv", {"pyproject.toml": project}),
        "uv lock": planned("uv", {"uv.lock": "version = 1", "pyproject.toml": project}),
        "uv": planned("uv", {"requirements.txt": "six\n"}),
        "conda": planned("conda", {"environment.yml": "name: ml\n"}),
        "pixi": planned("pixi", {"pixi.lock": "x"}, name="gpu"),
        "apptainer": planned("apptainer", {}, image="docker://python:3.12"),
        "shifter": planned("shifter", {}, image="docker:nersc/pytorch:24.06"),
    }
    folder = {name: str(build.folder) for name, build in told.items()}
    assert told["venv"].wanted == "six>=1\n"
    assert f"python3 -m venv {folder['venv']}" in told["venv"].script
    assert "uv sync --frozen --no-install-project" in told["uv lock"].script
    assert f"UV_PROJECT_ENVIRONMENT={folder['uv lock']}" in told["uv lock"].script
    assert "-r '/p/my project/requirements.txt'" in told["uv"].script
    assert "/opt/miniforge3/bin/conda env create --prefix" in told["conda"].script
    assert "export CONDA_CHANNELS=conda-forge\n" in told["conda"].script
    assert "pixi install --frozen --manifest-path '/p/my project' --environment gpu" in (
        told["pixi"].script
    )
    assert f"pull {folder['apptainer']} docker://python:3.12" in told["apptainer"].script
    assert "shifterimg pull docker:nersc/pytorch:24.06" in told["shifter"].script


@pytest.mark.parametrize("kind", ["apptainer", "shifter", "podman-hpc", "podman", "pyxis"])
def test_nothing_is_pulled_without_an_image(kind: str) -> None:
    with pytest.raises(ConfigError, match=f"of kind {kind}, and has no image"):
        planned(kind, {})


def test_the_name_follows_from_all_that_the_result_depends_on() -> None:
    first = planned("venv", {"requirements.txt": "six\n"})
    assert first.folder == planned("venv", {"requirements.txt": "six\n"}).folder
    assert first.folder.name.startswith("my_project-venv-")
    others = [
        planned("venv", {"requirements.txt": "six==1\n"}),
        planned("uv", {"requirements.txt": "six\n"}),
        planned("venv", {"requirements.txt": "six\n"}, SITE),
        planned("venv", {"requirements.txt": "six\n", "Pipfile": PIPFILE}),
    ]
    assert len({first.folder, *(one.folder for one in others)}) == 5


def test_nothing_to_build_from_is_told_with_the_files_that_would_do() -> None:
    assert "Pipfile.lock" in files_for("venv")
    with pytest.raises(ConfigError, match="nothing to build") as told:
        planned("conda", {})
    assert "environment.yml" in (told.value.mend or "")
    with pytest.raises(ConfigError, match="no valid TOML"):
        planned("venv", {"Pipfile": "[packages\n"})
    with pytest.raises(ConfigError, match=r"Pipfile\.lock cannot be read"):
        planned("venv", {"Pipfile": PIPFILE, "Pipfile.lock": "[]"})
