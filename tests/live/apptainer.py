"""The real Apptainer, for tests: installed beside the system, which stays as it is.

Debian has it in sid only, and its binaries need sid's libraries. So they are unpacked into a folder
of this checkout's cache, and the program that tests put on the PATH lays them over /usr in a mount
namespace of its own. It stays one process (exec): signals and exit codes are those of Apptainer.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

from tests.environments import CACHE, skip_or_fail
from tests.live.small_image import make_folders
from tests.packages import require

_SUITE = "sid"
_PROGRAM = """\
#!/bin/sh
# Root may drop its privileges inside; where root lacks some, Apptainer would ask for them all.
export APPTAINER_NO_PRIVS=1
exec unshare --mount --propagation private /bin/sh -ec '
root=$1 devices=$2; shift 2
mount -t overlay apptainer -o "lowerdir=$root/usr:/usr" /usr
for folder in /etc /var/lib; do
  mount -t overlay apptainer -o "lowerdir=$folder:$root$folder" "$folder"
done
if [ -n "$devices" ]; then
  mount -t overlay devices -o "lowerdir=$devices:/dev" /dev
  mount -t devpts devpts -o newinstance,ptmxmode=0666 /dev/pts
  mount -t tmpfs shm /dev/shm
fi
exec /usr/bin/apptainer "$@"' apptainer '{root}' '{devices}' "$@"
"""


def make_apptainer(folder: Path, *, gpus: int = 0) -> Path:
    """A folder for the PATH with `apptainer` in it; on its machine `gpus` GPUs without driver."""
    if os.geteuid() != 0:
        skip_or_fail("only root can lay another Debian's Apptainer over this one's /usr")
    require("mmdebstrap")
    root = _ensure_root()
    folder.mkdir(parents=True, exist_ok=True)
    devices = folder / "devices"
    if gpus:
        devices.mkdir()
        for name, minor in (*((f"nvidia{number}", number) for number in range(gpus)),
                            ("nvidiactl", 255)):  # fmt: skip
            os.mknod(devices / name, 0o20666, os.makedev(195, minor))
    program = folder / "apptainer"
    program.write_text(_PROGRAM.format(root=root, devices=devices if gpus else ""))
    program.chmod(0o755)
    return folder


def make_sif(file: Path, apptainer: Path, definition: str = "") -> Path:
    """An image of a few folders, as a file; a definition adds sections to it."""
    base = make_folders(file.with_suffix(".folders"))
    source = base
    if definition:
        source = file.with_suffix(".def")
        source.write_text(f"Bootstrap: localimage\nFrom: {base}\n\n{definition}")
    subprocess.run(
        [apptainer / "apptainer", "build", file, source], check=True, capture_output=True
    )
    return file


def _ensure_root() -> Path:
    """Apptainer and what it needs, unpacked once; never configured, and nothing is started."""
    root = CACHE / "apptainer"
    CACHE.mkdir(parents=True, exist_ok=True)
    with root.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (root / "usr" / "bin" / "apptainer").exists():
            return root
        half = root.with_suffix(".half")
        shutil.rmtree(half, ignore_errors=True)
        command = [
            "mmdebstrap", "--variant=extract", "--format=directory", "--include=apptainer,mount",
            "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", "--skip=cleanup/reproducible",
            # A mirror that is some days behind is good enough.
            '--aptopt=Acquire::Check-Valid-Until "false"', _SUITE, str(half), _mirror(),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line.startswith("E:")]
            skip_or_fail(f"apptainer is missing, and mmdebstrap could not get it: {said[:1]}")
        # It looks for its session folder below the prefix of its own helpers.
        (half / "usr/lib/var/lib/apptainer/mnt/session").mkdir(parents=True)
        half.rename(root)
    return root


def _mirror() -> str:
    """The mirror that this machine's apt uses."""
    words = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    return next((one for one in listed if "security" not in one), "")
