"""Which folders are on a network file system, so that other machines may see them."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

_NETWORK = {
    "nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb3", "smbfs", "afs", "glusterfs",
    "pvfs2", "orangefs", "wekafs", "panfs", "9p", "vast", "fuse.sshfs", "fuse.glusterfs",
    "fuse.ceph-fuse", "fuse.juicefs", "fuse.bindfs",
}  # fmt: skip


def is_network_folder(path: Path) -> bool:
    """Whether a folder is on a file system that several machines may write at once."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mounts = Path("/proc/self/mounts").read_text(errors="replace")
    except OSError:
        return False
    return file_system_of(os.path.realpath(path), mounts) in _NETWORK


def file_system_of(path: str, mounts: str) -> str:
    """The type of the file system that holds `path`, by the text of /proc/mounts."""
    best, kind = "", ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        # Spaces and similar characters are octal escapes there.
        point = re.sub(r"\\([0-7]{3})", lambda mount: chr(int(mount[1], 8)), fields[1])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind
