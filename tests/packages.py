"""Every Debian package that the tests need, in one list; whether it is here; and installing it.

    python -m tests.packages            # all that are missing
    python -m tests.packages procps     # these

As root on Debian a test that needs a package installs it first (`require`). Elsewhere it is skipped
with the line that says what to install, or fails where CI is set.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.environments import skip_or_fail

# Package -> files of it that prove it is there; any one of a package's names will do.
PACKAGES: dict[str, tuple[str, ...]] = {
    "bindfs": ("bindfs",),
    "charliecloud": ("ch-run",),
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "environment-modules": ("/usr/share/modules/init/profile.sh",),
    "fuse3": ("fusermount3",),
    "gcc": ("cc",),
    "git": ("git",),
    "gridengine-client": ("/usr/lib/gridengine/qsub",),
    "gridengine-exec": ("/usr/lib/gridengine/sge_execd",),
    "gridengine-master": ("/usr/lib/gridengine/sge_qmaster",),
    "hostname": ("hostname",),
    "iproute2": ("ip",),
    "iptables": ("iptables",),
    "libc6-dev": ("/usr/include/stdio.h",),
    "mariadb-server": ("mariadbd", "mysqld"),
    "mmdebstrap": ("mmdebstrap",),
    "munge": ("munged",),
    "nginx-light": ("nginx",),
    "openssh-sftp-server": ("/usr/lib/openssh/sftp-server",),
    "parallel": ("parallel",),
    "podman": ("podman",),
    "procps": ("ps",),
    "runc": ("runc",),
    "slurm-client": ("sbatch",),
    "slurmctld": ("slurmctld",),
    "slurmd": ("slurmd",),
    "slurmdbd": ("slurmdbd",),
    "sshfs": ("sshfs",),
    "zsh": ("zsh",),
}
SLURM = ("munge", "slurmctld", "slurmd", "slurm-client")
GRID_ENGINE = ("gridengine-master", "gridengine-exec", "gridengine-client")
ACCOUNTING = ("slurmdbd", "mariadb-server")

# Debian keeps daemons in sbin, which an ordinary user's PATH leaves out.
SBIN_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")

# invoke-rc.d asks this program before it starts a service; 101 means "don't".
SERVICE_POLICY = Path("/usr/sbin/policy-rc.d")
DENY_SERVICE_STARTS = "#!/bin/sh\nexit 101\n"


class MissingPackagesError(Exception):
    """Something is not installed here and could not be installed; the message is one line."""


def search_path() -> str:
    """PATH with the system folders for daemons added behind it."""
    folders = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder]
    return os.pathsep.join(dict.fromkeys([*folders, *SBIN_FOLDERS]))


def find_program(*names: str) -> str | None:
    """The path of the first of these programs that is installed; a whole path may be any file."""
    found = (
        name if name.startswith("/") and Path(name).exists() else shutil.which(name, path=path)
        for path in [search_path()]
        for name in names
    )
    return next((path for path in found if path), None)


def slurm_packages(*, accounting: bool) -> tuple[str, ...]:
    return (*SLURM, *(ACCOUNTING if accounting else ()))


def missing_packages(*names: str) -> list[str]:
    """Which of these packages are not on this machine."""
    return [name for name in names if find_program(*PACKAGES[name]) is None]


def missing_message(packages: list[str], reason: str = "") -> str:
    """One line that says what to type."""
    because = f" ({reason})" if reason else ""
    verb = "is" if len(packages) == 1 else "are"
    return (
        f"{', '.join(packages)} {verb} missing{because}: sudo apt-get install {' '.join(packages)}"
    )


def may_install() -> bool:
    return os.geteuid() == 0 and find_program("apt-get") is not None


def install(packages: list[str]) -> None:
    """Install these packages, and start none of the services that come with them."""
    if not may_install():
        raise MissingPackagesError(missing_message(packages))
    with _service_starts_denied():
        _apt_get(packages, "update", "-qq")
        _apt_get(packages, "install", "-y", "-qq", "--no-install-recommends", *packages)


def ensure_packages(*names: str) -> None:
    """Return once these are installed, or raise MissingPackagesError."""
    missing = missing_packages(*names)
    if not missing:
        return
    install(missing)
    still_missing = missing_packages(*names)
    if still_missing:
        raise MissingPackagesError(missing_message(still_missing, "installed, but not on PATH"))


def require(*names: str) -> None:
    """Go on where these are or can be installed; skip the test elsewhere, or fail it in CI."""
    reason = _why_missing(names)
    if reason:
        skip_or_fail(reason)


def find_shells() -> list[str]:
    """The shells in which job scripts are tried."""
    reason = _why_missing(("zsh",))
    if reason and os.environ.get("CI"):
        raise MissingPackagesError(reason)
    return ["bash"] if reason else ["bash", "zsh"]


@functools.cache  # A failed installation is not tried again for each test.
def _why_missing(names: tuple[str, ...]) -> str | None:
    try:
        ensure_packages(*names)
    except MissingPackagesError as missing:
        return str(missing)
    return None


def _apt_get(packages: list[str], *arguments: str) -> None:
    # The lock timeout lets two test runs that start together take turns.
    command = ["apt-get", "-o", "DPkg::Lock::Timeout=300", *arguments]
    environment = {**os.environ, "PATH": search_path(), "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        last_line = lines[-1] if lines else f"exit code {done.returncode}"
        raise MissingPackagesError(
            missing_message(packages, f"apt-get {arguments[0]} failed: {last_line}")
        )


@contextlib.contextmanager
def _service_starts_denied() -> Iterator[None]:
    try:
        descriptor = os.open(SERVICE_POLICY, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755)
    except FileExistsError:
        yield  # The machine has a policy of its own (containers usually deny too).
        return
    try:
        with os.fdopen(descriptor, "w") as policy:
            policy.write(DENY_SERVICE_STARTS)
        yield
    finally:
        SERVICE_POLICY.unlink()


def main(names: list[str]) -> int:
    try:
        ensure_packages(*(names or PACKAGES))
    except MissingPackagesError as missing:
        print(f"== tests that need them are skipped: {missing}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
