"""The real Apptainer, for tests: installed beside the system, which stays as it is.

Debian has it in sid only, and its binaries need sid's libraries. So they are unpacked into a folder
of this checkout's cache, and the program that tests put on the PATH lays them over /usr in a mount
namespace of its own. It stays one process (exec): signals and exit codes are those of Apptainer.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.debian import make_system
from tests.environments import Missing, skip_or_fail
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
    try:
        root, is_new = make_system(
            "apptainer", _SUITE, ("apptainer", "mount"), "usr/bin/apptainer", "--variant=extract"
        )
    except Missing as missing:
        skip_or_fail(f"apptainer is missing: {missing}")
    if is_new:
        # It looks for its session folder below the prefix of its own helpers.
        (root / "usr/lib/var/lib/apptainer/mnt/session").mkdir(parents=True)
    return root
