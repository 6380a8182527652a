"""Other releases of Slurm: each in a system of its own, as a folder of this checkout's cache.

    python -m tests.slurm.releases 26.05 sinfo --version      # a command in that system

The command runs as root in mounts and processes of its own, which end with it. This machine's other
folders (/home, /tmp, the checkout, its Python) are there at their own paths; what it writes
elsewhere goes away. The network is this machine's.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.debian import make_system
from tests.packages import ACCOUNTING, SLURM, ensure_packages

# Release -> the Debian that has it. This machine's own Slurm needs no system.
RELEASES = {"22.05": "bookworm", "24.11": "trixie", "26.05": "sid"}
# What the tests of the Slurm ring call, and the libraries that this machine's Python is linked to.
_PROGRAMS = (
    "ca-certificates", "git", "hostname", "iproute2", "openssh-client", "procps", "util-linux",
    "zsh", "libbz2-1.0", "libffi8", "libncursesw6", "libreadline8", "libsqlite3-0", "libuuid1",
)  # fmt: skip
# The system's own; every other folder at the top is this machine's.
_OWN = ("bin", "boot", "etc", "lib", "lib32", "lib64", "libx32", "media", "mnt", "proc", "run",
        "sbin", "usr", "var", "lost+found")  # fmt: skip
_ENTER = """
set -eu
system=$1 folder=$2; shift 2
mount -t tmpfs release /mnt
mkdir /mnt/up /mnt/work /mnt/root
root=/mnt/root
mount -t overlay release -o "lowerdir=$system,upperdir=/mnt/up,workdir=/mnt/work" $root
while [ "$1" != -- ]; do mkdir -p "$root$1"; mount --rbind "$1" "$root$1"; shift; done
shift
for file in hosts hostname resolv.conf; do [ ! -e /etc/$file ] || cp -L /etc/$file $root/etc/; done
mount -t proc proc $root/proc
mount -t tmpfs run $root/run
cd $root
pivot_root . mnt
umount -l /mnt
cd "$folder"
status=0; "$@" || status=$?
exit $status
"""


def ensure_release(release: str) -> Path:
    """The folder of a system with this Slurm, `/` where this machine has it; `Missing` where it
    cannot be made."""
    if slurm_version(Path("/")).startswith(f"{release}."):
        return Path("/")
    ensure_packages("mmdebstrap")
    packages = (*SLURM, *ACCOUNTING, *_PROGRAMS)
    root, _ = make_system(
        f"slurm-{release}", RELEASES[release], packages, "usr/sbin/slurmctld", "--variant=minbase"
    )
    return root


def slurm_version(root: Path) -> str:
    """22.05.8, say; empty where the system has no Slurm."""
    words = ["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f", "${Version}", "slurmctld"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.partition("-")[0]


def shared_folders() -> list[str]:
    """This machine's folders at the top that a system does not have of its own."""
    places = [place for place in sorted(Path("/").iterdir()) if place.name not in _OWN]
    return [str(place) for place in places if place.is_dir() and not place.is_symlink()]


def command_in(root: Path, words: Sequence[str]) -> list[str]:
    """The words that run a command in such a system, from the folder in which we are."""
    return [
        "unshare", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child",
        "sh", "-c", _ENTER, "enter", str(root), str(Path.cwd()), *shared_folders(), "/var/tmp",
        "--", *words,
    ]  # fmt: skip


if __name__ == "__main__":
    line = command_in(ensure_release(sys.argv[1]), sys.argv[2:])
    os.execvp(line[0], line)
