"""Each kind of environment as lines of shell: exact texts, in every shell, and really run."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from runyard.clusters.profile import Containers, Profile, Script, Software
from runyard.config.request import Agents, Environment
from runyard.errors import ConfigError
from runyard.launch.environment_checks import demand, look
from runyard.launch.environment_places import find_environment_places, find_image
from runyard.launch.environments import EnvironmentPlaces, wrap
from runyard.launch.script import script
from runyard.launch.shell_words import module_lines
from runyard.schedulers.slurm.script_words import WORDS
from tests.launch.planning import planned, request
from tests.packages import find_shells, require

PROFILE = Profile()
PLACE = EnvironmentPlaces(project=Path("/p/my project"), work=Path("/p/my project"), words=WORDS)
SHELLS = find_shells()


def run_lines(shell: str, lines: tuple[str, ...], then: str, **environ: str) -> str:
    text = "\n".join([*lines, then])
    done = subprocess.run(
        [shell, "-c", text],
        capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], "HOME": "/nowhere", **environ},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def write_script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_none_needs_nothing_and_modules_need_names() -> None:
    assert wrap(Environment(), PROFILE, PLACE).before == ()
    with pytest.raises(ConfigError, match="no modules are named"):
        wrap(Environment(kind="modules"), PROFILE, PLACE)
    named = Environment(kind="modules", modules=("python/3.11",))
    assert wrap(named, PROFILE, PLACE).launcher == ()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_virtual_environment_is_activated(shell: str, tmp_path: Path) -> None:
    project = tmp_path / "it's a project"
    subprocess.run(["python3", "-m", "venv", "--without-pip", project / ".venv"], check=True)
    for kind in ("venv", "uv"):
        environment = Environment(kind=kind)
        setting = find_environment_places(
            environment, PROFILE, project=project, work=project, words=WORDS, environ={}
        )
        wrapping = wrap(environment, PROFILE, setting)
        prefix = run_lines(shell, wrapping.before, "python -c 'import sys; print(sys.prefix)'")
        assert prefix == str(project / ".venv")


def test_an_environment_that_is_not_there_is_told_with_the_mend(tmp_path: Path) -> None:
    environment = Environment(kind="venv")
    setting = find_environment_places(
        environment, PROFILE, project=tmp_path, work=tmp_path, words=WORDS, environ={}
    )
    with pytest.raises(ConfigError, match="has no virtual environment") as told:
        wrap(environment, PROFILE, setting)
    assert "--build" in (told.value.mend or "")
    for kind, missing in (("conda", "no conda"), ("apptainer", "no image")):
        with pytest.raises(ConfigError, match=missing):
            wrap(Environment(kind=kind, name="ml"), PROFILE, PLACE)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_conda_environment_is_activated_by_name(shell: str, tmp_path: Path) -> None:
    """A stand-in for conda: its `conda.sh` as far as the name goes. conda itself is not to be had
    here."""
    root = tmp_path / "home of me" / "miniconda3"
    write_script(
        root / "etc/profile.d/conda.sh",
        'conda() { export CONDA_DEFAULT_ENV="$2" ACTION="$1"; }\n',
    )
    (root / "envs" / "ml" / "conda-meta").mkdir(parents=True)
    environment = Environment(kind="conda", name="ml")
    environ = {"HOME": str(tmp_path / "home of me"), "PATH": "/nowhere"}
    setting = find_environment_places(
        environment, PROFILE, project=tmp_path, work=tmp_path, words=WORDS, environ=environ
    )
    wrapping = wrap(environment, PROFILE, setting)
    shown = run_lines(shell, wrapping.before, 'echo "$ACTION $CONDA_DEFAULT_ENV"')
    assert shown == "activate ml"
    assert wrapping.checks[0].subject == str(root / "envs/ml/conda-meta")


def test_conda_is_found_where_the_profile_or_its_own_variables_say(tmp_path: Path) -> None:
    for place in ("site/conda", "own/miniforge3"):
        write_script(tmp_path / place / "etc/profile.d/conda.sh", "")
    site = replace(PROFILE, software=Software(conda_root="${SITE}/conda"))
    environment = Environment(kind="conda", name="ml")
    environ = {"SITE": str(tmp_path / "site"), "PATH": "/nowhere", "HOME": "/nowhere"}
    found = find_environment_places(
        environment, site, project=tmp_path, work=tmp_path, words=WORDS, environ=environ
    )
    assert found.conda == str(tmp_path / "site/conda")
    environ = {"CONDA_EXE": str(tmp_path / "own/miniforge3/bin/conda"), "PATH": "/nowhere"}
    found = find_environment_places(
        environment, PROFILE, project=tmp_path, work=tmp_path, words=WORDS, environ=environ
    )
    assert found.conda == str(tmp_path / "own/miniforge3")


@pytest.mark.parametrize("shell", SHELLS)
def test_pixi_is_asked_for_its_lines_in_the_scripts_shell(shell: str, tmp_path: Path) -> None:
    """A stand-in for pixi, which says how it was called. pixi itself is not to be had here."""
    write_script(tmp_path / "bin/pixi", '#!/bin/sh\nprintf \'CALLED="%s"\\n\' "$*"\n')
    (tmp_path / "pixi.toml").write_text("[project]\n")
    profile = replace(PROFILE, script=Script(interpreter=f"/bin/{shell}"))
    environment = Environment(kind="pixi", name="gpu")
    setting = find_environment_places(
        environment, profile, project=tmp_path, work=tmp_path, words=WORDS
    )
    lines = wrap(environment, profile, setting).before
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    called = run_lines(shell, lines, 'echo "$CALLED"', PATH=path)
    assert f"--shell {shell}" in called
    assert "--frozen" in called
    assert "--environment gpu" in called


@pytest.mark.parametrize("shell", SHELLS)
def test_modules_are_loaded_also_where_the_shell_does_not_know_the_word(
    shell: str, tmp_path: Path
) -> None:
    """A stand-in for `module`: a function that notes what it loads."""
    known = 'module() { LOADED="$*"; }'
    lines = (known, *module_lines(["gcc/12", "it's odd"]))
    assert run_lines(shell, lines, 'echo "$LOADED"') == "load gcc/12 it's odd"
    failed = subprocess.run(
        [shell, "-c", "\n".join(["module() { return 1; }", *module_lines(["gcc/12"])])],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert failed.returncode == 1
    assert "runyard: cannot load gcc/12" in failed.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_a_real_module_is_loaded_by_a_shell_that_does_not_know_the_word(
    shell: str, tmp_path: Path
) -> None:
    """Environment Modules, and a module of our own."""
    require("environment-modules")
    write_script(tmp_path / "pytorch" / "2.13", "#%Module\nsetenv OF_THE_MODULE yes\n")
    lines = module_lines(["pytorch/2.13"])
    shown = run_lines(shell, lines, 'echo "$OF_THE_MODULE"', MODULEPATH=str(tmp_path))
    assert shown == "yes"
    with pytest.raises(AssertionError, match=r"runyard: cannot load pytorch/9"):
        run_lines(shell, module_lines(["pytorch/9"]), "true", MODULEPATH=str(tmp_path))


def test_a_failing_activation_ends_the_job_and_says_why(tmp_path: Path) -> None:
    gone = replace(PLACE, place=str(tmp_path / "gone"))
    line = wrap(Environment(kind="venv"), PROFILE, gone).before[0]
    done = subprocess.run(["bash", "-c", f"{line}\necho on"], capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert f"runyard: cannot activate {tmp_path / 'gone'}" in done.stderr


def test_where_a_site_wants_it_each_job_builds_from_the_sites_own_wheels() -> None:
    site = replace(PROFILE, software=Software(wheels="site", build_where="inside"))
    environment = Environment(kind="venv", build=True)
    setting = replace(PLACE, place="/p/my project/requirements.txt")
    lines = "\n".join(wrap(environment, site, setting).before)
    assert 'virtualenv --no-download "$SLURM_TMPDIR/environment"' in lines
    assert "--no-index -r '/p/my project/requirements.txt'" in lines


def test_a_container_takes_the_containers_way() -> None:
    """Choosing one must never end in a virtual environment that happens to be there as well."""
    environment = Environment(kind="apptainer", image="/images/a.sif", path=".venv")
    profile = replace(PROFILE, containers=Containers(module="apptainer/1.3"))
    wrapping = wrap(environment, profile, replace(PLACE, place="/images/a.sif"))
    assert not any("activate" in line for line in wrapping.before)
    assert "module load apptainer/1.3" in wrapping.before[-1]
    assert '"$program" exec' in wrapping.launcher[2]
    shifter = Environment(kind="shifter", image="docker:nersc/pytorch:24.06")
    assert wrap(shifter, PROFILE, PLACE).header == ("--image=docker:nersc/pytorch:24.06",)
    on_gpus = wrap(shifter, PROFILE, replace(PLACE, gpus=True))
    assert on_gpus.header == ("--image=docker:nersc/pytorch:24.06", "--module=gpu")
    # A flag of the user's own is both in the header and where the image is started.
    nccl = replace(PROFILE, containers=Containers(gpu_flag="--module=gpu,nccl-2.15"))
    on_gpus = wrap(shifter, nccl, replace(PLACE, gpus=True))
    assert on_gpus.header[1] == "--module=gpu,nccl-2.15"
    assert '--image="$image" --module=gpu,nccl-2.15 --clearenv' in on_gpus.launcher[2]


# Stands in for Apptainer: runs in "the image" what it is given, with the image's own Python.
RUNS_INSIDE = """\
#!/bin/sh
[ "$1" = exec ] && [ -s "$2" ] || exit 255
PATH={python}:/usr/bin:/bin; shift 2; exec "$@"
"""


def test_an_image_without_wandb_is_told_and_one_that_cannot_start_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["python3", "-m", "venv", "--without-pip", tmp_path / "inside"], check=True)
    text = RUNS_INSIDE.format(python=tmp_path / "inside" / "bin")
    write_script(tmp_path / "bin" / "singularity", text)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    image = write_script(tmp_path / "a.sif", "an image")
    environment = Environment(kind="apptainer", image=str(image))
    checks = wrap(environment, PROFILE, replace(PLACE, place=str(image))).checks
    said: list[str] = []
    demand(checks, said.append)
    assert said == [
        "wandb is not in the image; programs that log need it: add `pip install wandb` where the "
        "image is made"
    ]
    (site,) = (tmp_path / "inside" / "lib").glob("python*/site-packages")
    write_script(site / "wandb.py", "")
    assert [seen.detail for seen in look(checks)] == [None] * 3
    write_script(tmp_path / "bin" / "singularity", "#!/bin/sh\nexit 255\n")
    *_, wandb = look(checks)
    assert (wandb.is_fine, wandb.detail) == (True, "not looked at: the image does not start here")


def test_the_environment_is_active_before_srun() -> None:
    """And before the agents, in every form of a job."""
    for form in ("nodes", "array"):
        asked = request(agents=Agents(count=2, form=form))
        found = replace(PLACE, place="/p/.venv")
        wrapping = wrap(Environment(kind="venv"), asked.profile, found)
        text = script(replace(planned(asked), wrapping=wrapping))
        start = "srun " if form == "nodes" else "runyard.node.agent"
        assert start in text
        assert text.index("/p/.venv/bin/activate") < text.index(start)


@pytest.mark.parametrize("mount", ["", ":", "/a:/b:/c:ro", "/a::/b"])
def test_a_mount_that_makes_no_sense_is_refused(mount: str) -> None:
    environment = Environment(kind="apptainer", image="/a.sif", mounts=(mount,))
    with pytest.raises(ConfigError, match="a mount cannot be"):
        wrap(environment, PROFILE, PLACE)


@pytest.mark.parametrize(
    ("kind", "image", "found"),
    [
        ("apptainer", "image.sif", "/p/image.sif"),
        ("apptainer", "images/torch", "/p/images/torch"),
        ("apptainer", "${SCRATCH}/a.sif", "/scratch/a.sif"),
        ("apptainer", "docker://python:3.12", "docker://python:3.12"),
        ("charliecloud", "/images/torch", "/images/torch"),
        ("charliecloud", "python:3.12", "python:3.12"),
        ("shifter", "docker:nersc/pytorch:24.06", "docker:nersc/pytorch:24.06"),
        ("podman-hpc", "nersc/pytorch:24.06", "nersc/pytorch:24.06"),
        ("podman", "localhost/torch", "localhost/torch"),
        ("pyxis", "/images/a.sqsh", "/images/a.sqsh"),
    ],
)
def test_an_image_is_a_file_or_the_name_of_one_elsewhere(kind: str, image: str, found: str) -> None:
    environ = {"SCRATCH": "/scratch"}
    assert find_image(kind, image, Path("/p"), environ) == found
