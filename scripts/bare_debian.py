"""Runs `./test` in a minimal Debian that has Python and nothing else. Needs root.

    scripts/bare_debian.py                          # everything, as CI runs it
    scripts/bare_debian.py tests/cli -k server      # words for `./test`
    scripts/bare_debian.py --mount /opt/wheels      # a folder of this machine, to be read there

It proves that the tests' own list of packages (tests/packages.py) is whole: whatever a test needs
is installed by it there, or the test fails. The system is made by debootstrap from the mirror that
this machine's apt uses, and kept as .cache/bare-debian/root.tar. Each run begins with a fresh copy,
a clone of this checkout's last commit, and mounts and processes of its own that end with it. How
pip, npm and TLS are set up is taken from this machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = (ROOT / ".cache").resolve() / "bare-debian"
CHECKOUT = "/srv/runyard"
INCLUDED = "python3,ca-certificates"

_SETTINGS = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/apt/sources.list",
    "/etc/pip.conf",
    "~/.config/pip/pip.conf",
    "~/.pip/pip.conf",
    "~/.npmrc",
)
_PASSED_ON = ("PIP_", "NPM_CONFIG_", "SSL_CERT_", "REQUESTS_CA", "CURL_CA", "NODE_EXTRA_CA",
              "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "RUNYARD_")  # fmt: skip

# A root of its own (not chroot: a test that enters a namespace would be outside again).
_ENTER = f"""
set -e
root=$1; shift
mount --bind "$root" "$root"
cd "$root"
mount --rbind /dev dev; mount --rbind /sys sys; mount -t proc proc proc
mount -t tmpfs tmpfs run
while [ "$1" != -- ]; do
  mkdir -p ".$2"; mount --bind "$1" ".$2"; shift 2
done
shift
mkdir -p outside; pivot_root . outside
umount -l /outside; rmdir /outside
cd {CHECKOUT}
exec "$@"
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mount", action="append", default=[], type=Path, metavar="FOLDER")
    args, words = parser.parse_known_args()
    if os.geteuid() != 0:
        print("only root can make a system: sudo scripts/bare_debian.py", file=sys.stderr)
        return 2
    FOLDER.mkdir(parents=True, exist_ok=True)
    root = _unpack(_make_tar())
    _copy_settings(root)
    clone = ["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), f"{root}{CHECKOUT}"]
    subprocess.run(clone, check=True)
    # What was downloaded or built in there serves the next run.
    mounts = {
        FOLDER / "packages": "/var/cache/apt/archives",
        FOLDER / "cache": f"{CHECKOUT}/.cache",
    }
    for folder in mounts:
        (folder / "partial").mkdir(parents=True, exist_ok=True)
    mounts |= {folder.resolve(): str(folder.resolve()) for folder in args.mount}
    pairs = [str(word) for pair in mounts.items() for word in pair]
    enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private",
             "sh", "-c", _ENTER, "enter", str(root), *pairs, "--"]  # fmt: skip
    done = subprocess.run([*enter, "./test", *words], env=_environment(), check=False)
    shutil.rmtree(root)
    return done.returncode


def _make_tar() -> Path:
    """The system as a tar file; made once."""
    tar = FOLDER / "root.tar"
    if tar.exists():
        return tar
    if shutil.which("debootstrap") is None:
        sys.exit("debootstrap is missing: apt-get install debootstrap")
    new, aside = FOLDER / "new", FOLDER / "root.tar.part"
    shutil.rmtree(new, ignore_errors=True)
    address, release = _mirror()
    print(f"== making a minimal Debian ({release})", flush=True)
    make = ["debootstrap", "--variant=minbase", f"--include={INCLUDED}", release, str(new), address]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["tar", "-C", str(new), "-cf", str(aside), "."], check=True)
    shutil.rmtree(new)
    return aside.replace(tar)


def _mirror() -> tuple[str, str]:
    """The address and the release from which this machine installs."""
    ask = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages"]
    lines = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.splitlines()
    release = subprocess.run(
        ["sh", "-c", ". /etc/os-release; echo $VERSION_CODENAME"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    return next(line.split()[0] for line in lines if line.split()[1] == release), release


def _unpack(tar: Path) -> Path:
    root = FOLDER / "root"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    subprocess.run(["tar", "-C", str(root), "-xpf", str(tar)], check=True)
    return root


def _copy_settings(root: Path) -> None:
    (root / "etc/apt/sources.list").unlink()
    for name in _SETTINGS:
        source = Path(name).expanduser()
        target = Path(f"{root}{name.replace('~', '/root')}")
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    for folder in ("sources.list.d", "apt.conf.d", "trusted.gpg.d"):
        shutil.copytree(f"/etc/apt/{folder}", root / "etc/apt" / folder, dirs_exist_ok=True)


def _environment() -> dict[str, str]:
    passed = {name: value for name, value in os.environ.items()
              if name.upper().startswith(_PASSED_ON)}  # fmt: skip
    return {
        **passed,
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "CI": "1",
    }


if __name__ == "__main__":
    sys.exit(main())
