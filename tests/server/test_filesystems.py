"""Which file system a folder is on, by the kernel's own table."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard.filesystems import file_system_of, is_network_folder

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
nfs:/home /home nfs4 rw 0 0
lustre /scratch lustre rw 0 0
tmpfs /scratch/fast tmpfs rw 0 0
auto /data autofs rw 0 0
nfs:/data /data nfs rw 0 0
x /mnt/with\\040space cifs rw 0 0
y /mnt/données beegfs rw 0 0
broken
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/var/x", "ext4"),
        ("/home", "nfs4"),
        ("/home/ada/.runyard", "nfs4"),
        ("/homeless", "ext4"),
        ("/scratch/a", "lustre"),
        ("/scratch/fast/a", "tmpfs"),
        ("/data/a", "nfs"),
        ("/mnt/with space/a", "cifs"),
        ("/mnt/données/a", "beegfs"),
    ],
)
def test_the_deepest_mount_counts(path: str, kind: str) -> None:
    assert file_system_of(path, MOUNTS) == kind


def test_what_the_kernel_makes_up_is_on_this_machine() -> None:
    assert is_network_folder(Path("/proc/self")) is False
