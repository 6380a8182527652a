"""Programs in the real Apptainer: what it lets in, where they may write, and what stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runyard.launch.container_script import Box
from runyard.launch.containers import CONTAINERS, container_launcher
from runyard.schedulers.slurm.script_words import WORDS
from tests.live.apptainer import make_apptainer, make_sif
from tests.live.small_image import host_mounts
from tests.node.terminals import until

pytestmark = pytest.mark.live

KEY = "k" * 40
# The places of an attempt that a program may write to; those of the box are named by variables.
LOOKS = """\
import json, os, pathlib, sys
environ = dict(os.environ)
written = {}
for name in ("WANDB_DIR", "scratch_dir", "SLURM_TMPDIR", "HOME", "TMPDIR", "work_dir", "db_dir"):
    written[name] = environ[name]
    (pathlib.Path(environ[name]) / "written").write_text(name)
for place in ("/workdir", "/var/tmp", "/"):
    (pathlib.Path(place) / "written-too").write_text(place)
words = b"".join(file.read_bytes() for file in pathlib.Path("/proc").glob("[0-9]*/cmdline"))
print(json.dumps({
    "argv": sys.argv[1:], "environ": environ, "written": written, "folder": os.getcwd(),
    "in the image": os.path.exists("/in-the-image"),
    "hosts": [one for one in (sys.argv[1:] or [""]) if os.path.exists(one)],
    "key in words": environ["WANDB_API_KEY"].encode() in words,
    "infiniband": os.path.exists("/dev/infiniband/uverbs0"),
    "devices": sorted(one for one in os.listdir("/dev") if one.startswith("nvidia")),
    "data": pathlib.Path("/data/words.txt").read_text(),
    "data is writable": not os.statvfs("/data").f_flag & os.ST_RDONLY,
}))
"""


@dataclass
class Node:
    """A node with Apptainer, and one attempt's folders and variables."""

    folder: Path
    environ: dict[str, str]
    within: tuple[str, ...] = ()
    """What is called with the program's command."""

    def box(self, image: Path, **more: Any) -> Box:
        return Box(
            image=str(image), work=str(self.folder / "work dir"), variables=("MINE",),
            words=WORDS, mounts=(f"{self.folder}/data:/data:ro", *host_mounts()), **more,
        )  # fmt: skip

    def start(self, box: Box, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.within, *container_launcher(CONTAINERS["apptainer"], box), *command],
            env=self.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip

    def look(self, box: Box, *words: str) -> dict[str, Any]:
        """What a program in the container sees."""
        process = self.start(box, sys.executable, "-c", LOOKS, *words)
        said, complaints = process.communicate(timeout=180)
        assert process.returncode == 0, complaints
        sight: dict[str, Any] = json.loads(said)
        return sight


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_apptainer(tmp_path_factory.mktemp("bin"), gpus=2)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory, programs: Path) -> Path:
    return make_sif(tmp_path_factory.mktemp("images") / "it's small.sif", programs)


@pytest.fixture
def node(tmp_path: Path, programs: Path) -> Node:
    for name in ("local", "trial/checkpoints", "scratch/birds", "work dir", "data", "home/ada"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "data" / "words.txt").write_text("from scratch")
    (tmp_path / "home/ada/secret").touch()
    environ = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "home/ada"),
        "LD_LIBRARY_PATH": "/of/the/host",
        "OF_THE_HOST": "stays outside",
        "SLURM_TMPDIR": str(tmp_path / "local"),
        "SLURM_JOB_ID": "77",
        "SLURM_PROCID": "3",
        "SLURM_ARRAY_JOB_ID": "70",
        "SLURM_ARRAY_TASK_ID": "7",
        "WANDB_API_KEY": KEY,
        "WANDB_DIR": str(tmp_path / "trial"),
        "RUNYARD_STOP_FILE": str(tmp_path / "trial/stop"),
        "scratch_dir": str(tmp_path / "scratch/birds"),
        "MINE": "a=b \"c\" $HOME 'd'",
    }
    return Node(tmp_path, environ)


def test_the_image_runs_from_a_copy_on_the_nodes_own_disk(node: Node, image: Path) -> None:
    box = node.box(image, workdir="/workdir")
    sight = node.look(box)
    assert sight["in the image"]
    # Apptainer itself says which file it runs.
    copy = Path(sight["environ"]["APPTAINER_CONTAINER"])
    assert copy.is_relative_to(node.folder / "local")
    assert copy.read_bytes() == image.read_bytes()
    before = copy.stat()
    assert node.look(box)["environ"]["APPTAINER_CONTAINER"] == str(copy)
    assert (copy.stat().st_ino, copy.stat().st_mtime) == (before.st_ino, before.st_mtime)


def test_an_image_is_not_copied_into_the_memory_of_the_job(node: Node, image: Path) -> None:
    """A /tmp in memory, as Debian 13 has it: control groups charge it to the job."""
    in_memory = 'mount -t tmpfs memory "$0"; exec "$@"'
    node.within = ("unshare", "--mount", "sh", "-c", in_memory, node.environ["SLURM_TMPDIR"])
    sight = node.look(node.box(image, workdir="/workdir"))
    assert sight["environ"]["APPTAINER_CONTAINER"] == str(image)


def test_gpus_a_clean_environment_no_home_contained_and_writable(node: Node, image: Path) -> None:
    outside = [str(node.folder / "home/ada/secret"), "/tmp/written"]
    content = image.read_bytes()
    sight = node.look(node.box(image, workdir="/workdir", gpu_flag="--nv"), *outside)
    assert sight["devices"] == ["nvidia0", "nvidia1", "nvidiactl"]
    environ = sight["environ"]
    assert "OF_THE_HOST" not in environ
    assert "/of/the/host" not in environ.get("LD_LIBRARY_PATH", "")
    # Home and /tmp are there, and are not the host's: only what the program itself wrote.
    assert sight["hosts"] == outside[1:]
    assert environ["HOME"] == node.environ["HOME"]
    assert not (node.folder / "home/ada/written").exists()
    # It wrote below /, which is gone, and the image is as before.
    assert not Path("/written-too").exists()
    assert image.read_bytes() == content
    assert node.look(node.box(image, workdir="/workdir"))["devices"] == []


def test_a_container_has_the_nodes_infiniband(node: Node, image: Path, tmp_path: Path) -> None:
    """--contain gives it a /dev of its own; NCCL would take the slow network without a word."""
    devices = tmp_path / "devices"
    (devices / "infiniband").mkdir(parents=True)
    os.mknod(devices / "infiniband" / "uverbs0", 0o20666, os.makedev(231, 192))
    assert not node.look(node.box(image, workdir="/workdir"))["infiniband"]
    lay_over = 'mount -t overlay devices -o "lowerdir=$0:/dev" /dev; exec "$@"'
    node.within = ("unshare", "--mount", "sh", "-c", lay_over, str(devices))
    assert node.look(node.box(image, workdir="/workdir"))["infiniband"]


def test_what_is_kept_and_what_vanishes(node: Node, image: Path) -> None:
    sight = node.look(node.box(image, workdir="/workdir"))
    assert sight["folder"] == str(node.folder / "work dir")
    kept = {
        str(file.relative_to(node.folder)): file.read_text()
        for name in ("trial", "scratch")
        for file in (node.folder / name).rglob("written")
    }
    assert kept == {"trial/written": "WANDB_DIR", "scratch/birds/written": "scratch_dir"}
    assert (sight["data"], sight["data is writable"]) == ("from scratch", False)
    # Everything else is in one box on the node's own disk.
    (drawer,) = (node.folder / "local").glob("runyard-box-*")
    inside = {str(file.relative_to(drawer)) for file in drawer.rglob("written*")}
    assert inside == {"home/written", "tmp/written", "tmp/written-too", "work/written",
                      "work/written-too", "db/written"}  # fmt: skip
    node.look(node.box(image, workdir="/workdir"))
    assert not drawer.exists()


def test_numbers_and_the_key_come_in_and_the_key_by_no_command_line(
    node: Node, image: Path
) -> None:
    odd = ["two words", "it's", "", "$HOME", "a\nb", "é", "--x=[1, 2]"]
    sight = node.look(node.box(image, workdir="/workdir"), *odd)
    assert sight["argv"] == odd
    names = ("SLURM_JOB_ID", "SLURM_PROCID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "MINE")
    for name in (*names, "WANDB_API_KEY"):
        assert sight["environ"][name] == node.environ[name]
    # Apptainer shares the host's processes with its programs: all command lines were looked at.
    assert not sight["key in words"]


def test_the_definition_on_the_page_copies_the_code_and_gets_the_command(
    node: Node, programs: Path
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "environments.md").read_text()
    post, _, runscript = page.partition("%post\n")[2].partition("```")[0].partition("%runscript\n")
    # No registry is to be had here: the image has the host's Python and lacks what pip would add.
    made = "\n".join(line for line in post.splitlines() if "pip install" not in line)
    definition = f"%setup\n{made.replace(' /', ' $APPTAINER_ROOTFS/')}\n%runscript\n{runscript}"
    image = make_sif(node.folder / "page.sif", programs, definition)
    (node.folder / "work dir" / "train.py").touch()
    node.environ["source_dir"] = str(node.folder / "work dir")
    box = node.box(image, workdir="/workdir")
    process = node.start(box, "sh", "-c", 'pwd; ls; stat -c %a /home/user; echo "$1"', "x", "it's")
    said, complaints = process.communicate(timeout=180)
    assert said == "/workdir\ntrain.py\n777\nit's\n", complaints


def test_signals_and_exit_codes_are_the_programs_own(node: Node, image: Path) -> None:
    up = node.folder / "trial" / "up"
    program = (
        "import signal, sys, time; signal.signal(signal.SIGUSR2, lambda *_: sys.exit(75));"
        f" open({str(up)!r}, 'w').close(); time.sleep(600)"
    )
    process = node.start(node.box(image), sys.executable, "-c", program)
    until(up.exists, "the program")
    process.send_signal(signal.SIGUSR2)
    process.communicate(timeout=180)
    assert process.returncode == 75
