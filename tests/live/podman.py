"""The real podman, for tests: its images and containers in a folder of theirs."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.environments import skip_or_fail
from tests.live.small_image import make_folders
from tests.packages import require

IMAGE = "localhost/small"
# Limits that need no privilege: podman's own are above those that a container's root may set.
_CONF = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
"""
_STORAGE = """\
[storage]
driver = "overlay"
graphroot = "{folder}/images"
rootless_storage_path = "{folder}/images"
runroot = "{folder}/run"
"""


@dataclass(frozen=True)
class Podman:
    """Where it is set up, and the variables that say so."""

    environ: dict[str, str]

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["podman", *words], env={**os.environ, **self.environ}, check=check,
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip

    def containers(self) -> list[str]:
        """Those that run. One that has ended may be left: on a busy machine podman is killed with
        its program before it has removed it, and a removal by others could take it the exit code.
        """
        return self.run("ps", "--quiet").stdout.split()


def write_settings(folder: Path, storage: Path) -> dict[str, str]:
    """Its files into the folder; the variables that name them. Images are kept in `storage`."""
    files = {
        "CONTAINERS_CONF": (folder / "containers.conf", _CONF),
        "CONTAINERS_STORAGE_CONF": (folder / "storage.conf", _STORAGE.format(folder=storage)),
    }
    for file, text in files.values():
        file.write_text(text)
    return {name: str(file) for name, (file, _) in files.items()}


@contextlib.contextmanager
def open_podman(folder: Path) -> Iterator[Podman]:
    """With an image of a few folders; afterwards no container and no mount is left."""
    require("podman", "runc")
    podman = Podman(write_settings(folder, folder))
    subprocess.run(
        ["tar", "-C", make_folders(folder / "small"), "-cf", folder / "small.tar", "."], check=True
    )
    podman.run("import", str(folder / "small.tar"), IMAGE)
    words = ("run", "--rm", "--network=host", "--volume=/usr:/usr", IMAGE, "/bin/true")
    tried = podman.run(*words, check=False)
    if tried.returncode:
        skip_or_fail(f"podman cannot run containers here: {tried.stderr.strip()}")
    try:
        yield podman
    finally:
        podman.run("rm", "--all", "--force", "--time=0", check=False)
        podman.run("rmi", "--all", "--force", check=False)
        for name in ("images/overlay", "run"):
            subprocess.run(["umount", "-l", folder / name], capture_output=True, check=False)
