"""Programs in containers: exactly the mounts and variables that are meant, and the key by no word.

Shifter, podman-hpc and pyxis are not to be had here: stand-ins on the path record how they are
called and then run the command; so they do for Apptainer, to see its words. The real Apptainer,
Charliecloud and podman are in tests/live: test_apptainer.py, test_charliecloud.py, test_podman.py.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from runyard.launch.container_script import Box, launcher_text
from runyard.launch.containers import CONTAINERS, container_launcher
from runyard.schedulers.slurm.script_words import WORDS
from tests.node.terminals import until

GOLDEN = Path(__file__).parent / "golden" / "containers"
KEY = "k" * 40
RECORDED = ("apptainer", "shifter", "podman-hpc", "pyxis")

# Notes its words and its surroundings, then runs the command: the image's shell, and what follows.
STAND_IN = """\
#!{python} -IS
import json, os, sys
words = sys.argv[1:]
with open({record!r}, "w") as file:
    json.dump({{"program": os.path.basename(sys.argv[0]), "words": words,
               "environ": dict(os.environ)}}, file)
shell = words.index("/bin/sh") if "/bin/sh" in words else words.index("-c") - 1
command = ["/bin/sh", *words[shell + 1:]]
os.execv("/bin/sh", command)
"""
SEES = """\
import json, os, sys
print(json.dumps({"argv": sys.argv[1:], "pid": os.getpid()}))
"""


@dataclass
class Node:
    """A node with a stand-in on its path, and one attempt's variables."""

    folder: Path
    record: Path
    environ: dict[str, str]

    def run(self, kind: str, box: Box, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*container_launcher(CONTAINERS[kind], box), *command],
            env=self.environ, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def recorded(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.record.read_text())
        return found


@pytest.fixture
def node(tmp_path: Path) -> Node:
    record, path = tmp_path / "record.json", tmp_path / "bin"
    path.mkdir()
    for program in ("apptainer", "shifter", "podman-hpc", "srun"):
        script = path / program
        script.write_text(STAND_IN.format(python=sys.executable, record=str(record)))
        script.chmod(0o755)
    for folder in ("local", "trial/checkpoints", "scratch/birds", "work dir", "data"):
        (tmp_path / folder).mkdir(parents=True)
    environ = {
        "PATH": f"{path}:{os.environ['PATH']}",
        "HOME": "/home/ada",
        "LD_LIBRARY_PATH": "/cuda/of/the/host",
        "SLURM_TMPDIR": str(tmp_path / "local"),
        "SLURM_JOB_ID": "77",
        "SLURM_PROCID": "0",
        "SLURM_ARRAY_JOB_ID": "70",
        "SLURM_ARRAY_TASK_ID": "7",
        "CUDA_VISIBLE_DEVICES": "2",
        "WANDB_API_KEY": KEY,
        "WANDB_RUN_ID": "abc",
        "WANDB_DIR": str(tmp_path / "trial"),
        "WANDB_SWEEP_PARAM_PATH": str(tmp_path / "trial/wandb/sweep-1/config-abc.yaml"),
        "RUNYARD_STOP_FILE": str(tmp_path / "trial/stop"),
        "RUNYARD_CHECKPOINT_DIR": str(tmp_path / "trial/checkpoints"),
        "RUNYARD_ATTEMPT_TOKEN": "mark",
        "scratch_dir": str(tmp_path / "scratch/birds"),
        "MINE": "a=b \"c\" $HOME 'd'",
    }
    return Node(tmp_path, record, environ)


def box_of(node: Node, **more: Any) -> Box:
    image = node.folder / "image.sif"
    image.write_bytes(b"an image")
    work = str(node.folder / "work dir")
    return Box(image=str(image), work=work, words=WORDS, variables=("MINE",), **more)


@pytest.mark.parametrize("kind", list(CONTAINERS))
def test_the_script_is_the_golden_one(kind: str) -> None:
    flag = "--nv" if kind != "charliecloud" else None
    box = Box(
        image="/images/it's.sif", work="/p/my project", mounts=("/data", "${SCRATCH}/d:/d:ro"),
        words=WORDS, variables=("MINE",), workdir="/workdir", gpu_flag=flag,
    )  # fmt: skip
    text = launcher_text(CONTAINERS[kind], box)
    file = GOLDEN / f"{kind}.sh"
    if os.environ.get("RUNYARD_WRITE_GOLDEN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert text == file.read_text()
    for shell in ("sh", "bash"):
        subprocess.run([shell, "-n", file], check=True)


@pytest.mark.parametrize("kind", RECORDED)
def test_the_command_comes_through_as_given(kind: str, node: Node) -> None:
    odd = ["two words", "it's", "", "$HOME", "a\nb", "é", "--x=[1, 2]"]
    done = node.run(kind, box_of(node), sys.executable, "-c", SEES, *odd)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["argv"] == odd


def variables_in(kind: str, told: dict[str, Any]) -> dict[str, str]:
    """What a kind of container was told to let in: name and value."""
    environ, words = told["environ"], told["words"]
    if kind == "apptainer":
        own = "APPTAINERENV_"
        return {name.removeprefix(own): environ[name] for name in environ if name.startswith(own)}
    if kind == "shifter":
        path = Path(_option(words, "--env-file"))
        assert path.stat().st_mode & 0o077 == 0
        return dict(line.split("=", 1) for line in path.read_text().splitlines())
    if kind == "podman-hpc":
        named = [word.removeprefix("--env=") for word in words if word.startswith("--env=")]
    else:
        named = _option(words, "--export").split(",")
    return {name: environ[name] for name in named}


@pytest.mark.parametrize("kind", RECORDED)
def test_exactly_these_variables_come_in_and_the_key_by_no_word(kind: str, node: Node) -> None:
    node.run(kind, box_of(node), "true")
    told = node.recorded()
    found = variables_in(kind, told)
    theirs = {name for name in node.environ if name.startswith(("WANDB_", "RUNYARD_", "SLURM_"))}
    ours = {"CUDA_VISIBLE_DEVICES", "scratch_dir", "MINE", "work_dir", "db_dir", "TMPDIR"}
    home = set() if kind == "apptainer" else {"HOME"}
    # Values that a step within the step would set anew have a second name until they are inside.
    kept = {name for name in found if name.startswith("RUNYARD_KEPT")}
    assert bool(kept) == (kind == "pyxis")
    assert set(found) - kept == theirs | ours | home
    assert found["MINE"] == node.environ["MINE"]
    assert found["WANDB_API_KEY"] == KEY
    assert KEY not in json.dumps(told["words"])


def test_apptainer_is_contained_clean_and_writable_on_the_nodes_own_disk(node: Node) -> None:
    box = box_of(
        node, gpu_flag="--nv", workdir="/workdir", mounts=(f"{node.folder}/data:/data:ro",)
    )
    node.run("apptainer", box, "true")
    words = node.recorded()["words"]
    own = ["exec", "--nv", "--cleanenv", "--no-home", "--contain", "--writable-tmpfs", "--home"]
    assert words[:7] == own
    mounts = [words[place + 1] for place, word in enumerate(words) if word == "--bind"]
    (inside,) = [one.partition(":")[0] for one in mounts if one.endswith(":/tmp")]
    drawer = str(Path(inside).parent)
    assert drawer.startswith(f"{node.folder}/local/runyard-box-")
    where = node.folder
    assert mounts == [
        f"{drawer}/tmp:/tmp",
        f"{drawer}/tmp:/var/tmp",
        f"{drawer}/home:/home/ada",
        f"{drawer}:{drawer}",
        f"{drawer}/work:/workdir",
        f"{where}/scratch/birds:{where}/scratch/birds",
        f"{where}/local:{where}/local",
        f"{where}/trial:{where}/trial",
        f"{where}/work dir:{where}/work dir",
        f"{where}/data:/data:ro",
    ]
    image = words[words.index("/bin/sh") - 1]
    assert Path(image).parent.parent == node.folder / "local"
    assert Path(image).read_bytes() == b"an image"
    without = replace(box, gpu_flag=None)
    node.run("apptainer", without, "true")
    assert "--nv" not in node.recorded()["words"]


def test_where_there_is_only_singularity_it_runs_the_same_image(node: Node) -> None:
    own = node.folder / "bin"
    (own / "apptainer").rename(own / "singularity")
    # Nothing of the machine's own, which may have the real one.
    node.environ["PATH"] = f"{own}:/usr/bin:/bin"
    done = node.run("apptainer", box_of(node), sys.executable, "-c", SEES, "as given")
    assert done.returncode == 0, done.stderr
    told = node.recorded()
    assert told["program"] == "singularity"
    assert str(node.folder / "local") in next(one for one in told["words"] if "image" in one)
    assert told["environ"]["SINGULARITYENV_WANDB_API_KEY"] == KEY
    assert json.loads(done.stdout)["argv"] == ["as given"]


def test_a_user_base_with_more_libraries_comes_in(node: Node) -> None:
    base = node.folder / "extra packages"
    base.mkdir()
    node.environ["PYTHONUSERBASE"] = str(base)
    node.run("shifter", box_of(node), "true")
    told = node.recorded()
    assert variables_in("shifter", told)["PYTHONUSERBASE"] == str(base)
    assert f"--volume={base}:{base}" in told["words"]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("shifter", ["--module=gpu", "--clearenv"]),
        ("podman-hpc", ["run", "--rm", "--gpu", "--network=host"]),
        ("pyxis", ["--overlap", "--no-container-mount-home"]),
    ],
)
def test_other_kinds_are_called_in_their_own_words(kind: str, words: list[str], node: Node) -> None:
    node.run(kind, box_of(node, gpu_flag="--nv"), "true")
    found = node.recorded()["words"]
    assert [word for word in words if word not in found] == []
    assert f"{node.folder}/trial:{node.folder}/trial" in json.dumps(found)


def test_an_image_is_copied_once_and_read_from_where_it_is_without_room(node: Node) -> None:
    box = box_of(node)
    node.run("apptainer", box, "true")
    (copy,) = [
        one for one in (node.folder / "local").glob("runyard-images-*/*") if one.suffix == ".sif"
    ]
    before = copy.stat()
    node.run("apptainer", box, "true")
    assert copy.stat().st_ino == before.st_ino
    copy.unlink()
    (node.folder / "bin" / "cp").write_text(
        "#!/bin/sh\necho 'No space left on device' >&2; exit 1\n"
    )
    (node.folder / "bin" / "cp").chmod(0o755)
    done = node.run("apptainer", box, "true")
    assert done.returncode == 0
    assert "no room for the image" in done.stderr
    assert box.image in node.recorded()["words"]


def test_what_ended_attempts_left_is_cleaned_and_what_lives_is_not(node: Node) -> None:
    box = box_of(node)
    node.run("apptainer", box, "true")
    local = node.folder / "local"
    (old,) = local.glob("runyard-box-*")
    (old / "home" / "core").write_text("large")
    host = os.uname().nodename
    alive = local / f"runyard-box-{host}-{os.getpid()}-AAAAAA"
    alive.mkdir()
    node.run("apptainer", box, "true")
    assert not old.exists()
    assert alive.exists()


def test_signals_and_exit_codes_are_the_programs_own(node: Node, tmp_path: Path) -> None:
    program = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7));"
        f" open({str(tmp_path / 'up')!r}, 'w').close(); time.sleep(60)"
    )
    process = subprocess.Popen(
        [*container_launcher(CONTAINERS["apptainer"], box_of(node)), sys.executable, "-c", program],
        env=node.environ, start_new_session=True,
    )  # fmt: skip
    until(lambda: (tmp_path / "up").exists(), "the program")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=180) == 7


def test_a_start_script_of_the_image_gets_the_command(node: Node, tmp_path: Path) -> None:
    """The shell that chooses runs inside; here it is given start scripts by a changed path."""
    text = launcher_text(CONTAINERS["apptainer"], box_of(node))
    for content, used in (
        ('#!/bin/sh\ncp -r /code /work\nexec "$@"\n', True),
        ('#!/bin/sh\nOCI_RUN="$@"\n', False),
        ('#!/bin/sh\nexec /bin/bash "$@"\n', False),
        ("#!/bin/sh\necho There is no runscript defined for this container\n", False),
    ):
        start = tmp_path / "start.sh"
        start.write_text(content.replace("cp -r /code /work", "echo started"))
        start.chmod(0o755)
        script = text.replace("/runyard-start /.singularity.d/runscript", str(start))
        done = subprocess.run(
            ["/bin/sh", "-c", script, "x", "echo", "as given"],
            env=node.environ, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout == ("started\n" if used else "") + "as given\n"


def test_the_definition_on_the_page_copies_the_code_and_hands_the_command_on(
    node: Node, tmp_path: Path
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "environments.md").read_text()
    lines = page.partition("%runscript\n")[2].partition("```")[0]
    (tmp_path / "inside").mkdir()
    start = tmp_path / "start.sh"
    start.write_text("#!/bin/sh\n" + lines.replace("/workdir", f"{tmp_path}/inside"))
    start.chmod(0o755)
    (node.folder / "data" / "train.py").touch()
    node.environ["source_dir"] = str(node.folder / "data")
    text = launcher_text(CONTAINERS["apptainer"], box_of(node))
    script = text.replace("/runyard-start /.singularity.d/runscript", str(start))
    done = subprocess.run(
        ["/bin/sh", "-c", script, "x", "sh", "-c", "pwd; ls"],
        env=node.environ, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == f"{tmp_path}/inside\ntrain.py\n"


def test_a_job_without_a_home_has_one_in_its_box(node: Node) -> None:
    for home in ("", "/"):
        node.environ["HOME"] = home
        done = node.run("apptainer", box_of(node), "true")
        assert done.returncode == 0, done.stderr
        words = node.recorded()["words"]
        assert not [word for word in words if word.endswith(":/")]


def _option(words: list[str], name: str) -> str:
    return next(word for word in words if word.startswith(f"{name}=")).partition("=")[2]
