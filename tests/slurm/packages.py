"""Which Debian packages a disposable Slurm needs, whether they are here, and installing them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

# Package -> programs of it that prove it is there; any one of a package's names will do.
SLURM_PACKAGES: dict[str, tuple[str, ...]] = {
    "munge": ("munged",),
    "slurmctld": ("slurmctld",),
    "slurmd": ("slurmd",),
    "slurm-client": ("sbatch",),
}
ACCOUNTING_PACKAGES: dict[str, tuple[str, ...]] = {
    "slurmdbd": ("slurmdbd",),
    "mariadb-server": ("mariadbd", "mysqld"),
}

# Debian keeps daemons in sbin, which an ordinary user's PATH leaves out.
SBIN_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")

# invoke-rc.d asks this program before it starts a service; 101 means "don't".
SERVICE_POLICY = Path("/usr/sbin/policy-rc.d")
DENY_SERVICE_STARTS = "#!/bin/sh\nexit 101\n"


class MissingPackagesError(Exception):
    """Slurm is not installed here and could not be installed; the message is one line."""


def search_path() -> str:
    """PATH with the system folders for daemons added behind it."""
    folders = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder]
    return os.pathsep.join(dict.fromkeys([*folders, *SBIN_FOLDERS]))


def find_program(*names: str) -> str | None:
    """The path of the first of these programs that is installed."""
    found = (shutil.which(name, path=search_path()) for name in names)
    return next((path for path in found if path), None)


def required_packages(*, accounting: bool) -> dict[str, tuple[str, ...]]:
    return {**SLURM_PACKAGES, **(ACCOUNTING_PACKAGES if accounting else {})}


def missing_packages(*, accounting: bool) -> list[str]:
    """Names of the needed packages whose programs are not on this machine."""
    needed = required_packages(accounting=accounting)
    return [package for package, programs in needed.items() if find_program(*programs) is None]


def missing_message(packages: list[str], reason: str = "") -> str:
    """One line that says what to type."""
    because = f" ({reason})" if reason else ""
    return f"Slurm is missing{because}: sudo apt-get install {' '.join(packages)}"


def may_install() -> bool:
    return os.geteuid() == 0 and find_program("apt-get") is not None


def install(packages: list[str]) -> None:
    """Install these packages, and start none of the services that come with them."""
    if not may_install():
        raise MissingPackagesError(missing_message(packages))
    with _service_starts_denied():
        _apt_get(packages, "update", "-qq")
        _apt_get(packages, "install", "-y", "-qq", "--no-install-recommends", *packages)


def ensure_packages(*, accounting: bool) -> None:
    """Return once everything needed is installed, or raise MissingPackagesError."""
    missing = missing_packages(accounting=accounting)
    if not missing:
        return
    install(missing)
    still_missing = missing_packages(accounting=accounting)
    if still_missing:
        raise MissingPackagesError(missing_message(still_missing, "installed, but not on PATH"))


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
