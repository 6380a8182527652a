"""Other Debian systems as folders: made once by mmdebstrap, kept in this checkout's cache."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.environments import CACHE, Missing

# What no test reads is half of a small system.
_LEFT_OUT = ("man", "doc", "locale", "info")


def make_system(
    name: str, suite: str, packages: Sequence[str], proof: str, *options: str
) -> tuple[Path, bool]:
    """The folder of a system of `suite` that has these packages, and whether it was made just now.

    `proof` is a file of it that shows that it is whole. Missing, with the tool's own words, where
    mmdebstrap cannot get it.
    """
    root = CACHE / name
    CACHE.mkdir(parents=True, exist_ok=True)
    with root.with_name(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (root / proof).exists():
            return root, False
        half = root.with_name(f"{name}.half")
        shutil.rmtree(half, ignore_errors=True)
        command = [
            "mmdebstrap", "--format=directory", f"--include={','.join(packages)}", *options,
            "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", "--skip=cleanup/reproducible",
            # A mirror that is some days behind is good enough.
            '--aptopt=Acquire::Check-Valid-Until "false"',
            '--aptopt=APT::Install-Recommends "false"',
            # What a power cut leaves half done is made anew: no file waits for the disk.
            "--dpkgopt=force-unsafe-io",
            *(f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in _LEFT_OUT),
            suite, str(half), _mirror(),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            words = [line for line in done.stderr.splitlines() if line.startswith("E:")]
            raise Missing(f"mmdebstrap could not make Debian {suite} with {name}: {words[:1]}")
        half.rename(root)
    return root, True


def _mirror() -> str:
    """The mirror that this machine's apt uses."""
    words = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    addresses = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    return next((address for address in addresses if "security" not in address), "")
