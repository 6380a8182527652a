"""What a cluster answered to `runyard doctor`, in a file that may leave it; and reading one."""

from __future__ import annotations

import contextlib
import getpass
import grp
import json
import os
import pwd
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runyard.clusters.asking import USUAL_SECONDS, Answer
from runyard.clusters.findings import Finding
from runyard.clusters.load import GENERIC
from runyard.clusters.stand_ins import StandIns
from runyard.config.flags import NO_FLAGS, Flags
from runyard.errors import StateError, UsageError
from runyard.home import write_whole
from runyard.schedulers.choice import has_queue
from runyard.schedulers.doctor import Doctor
from runyard.version import __version__

FILE = "runyard-doctor.json"
_ABOUT = (
    "What a cluster answered to `runyard doctor`. People, hosts, accounts and most partitions have "
    "stand-ins here; settings that may name somebody are left out."
)
_SECRET = ("KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL")
# What stands in runyard.yaml is the project's own affair.
_PRIVATE_GROUPS = ("this project",)


@dataclass(frozen=True)
class Shared:
    """Such a file, read."""

    scheduler: str
    user: str
    """The stand-in of who asked."""
    answers: Mapping[str, Answer]
    node: Mapping[str, Any] | None
    containers: list[str]
    cuda: list[str]

    def ask(self, *words: str, seconds: float = USUAL_SECONDS) -> Answer:
        """Answers as the cluster did."""
        nothing = Answer(trouble=f"{words[0]}: the file has no answer to this question")
        return self.answers.get(" ".join(words), nothing)


def write_shared(
    file: Path,
    scheduler: str,
    doctor: Doctor,
    hosts: Sequence[str],
    findings: Sequence[Finding],
    node: Mapping[str, Any] | None,
    flags: Flags = NO_FLAGS,
    *,
    profile: str = GENERIC,
    folders: Sequence[Path] = (),
    containers: list[str],
    cuda: list[str],
) -> int:
    """How many names have a stand-in or are hidden."""
    names = _names_here(hosts, node, flags, profile, folders)
    content = {
        "about": _ABOUT,
        "runyard": __version__,
        "made": time.strftime("%Y-%m-%d"),
        "scheduler": scheduler,
        "user": names.of("user", doctor.user),
        "asked": doctor.share(names),
        "node": names.values(node),
        "containers": containers,
        "cuda": names.values(cuda),
        "findings": [_finding(finding, names) for finding in findings],
    }
    try:
        write_whole(file, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise StateError(f"cannot write {file}", said=error.strerror) from None
    return names.count


def read_shared(file: Path) -> Shared:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        answers = {
            asked["command"]: Answer(asked["answer"], asked["trouble"], asked["is_missing"])
            for asked in content["asked"]
        }
        if not has_queue(content["scheduler"]):
            raise ValueError(f"no scheduler {content['scheduler']!r}")
        return Shared(
            content["scheduler"], content["user"], answers, content["node"],
            content["containers"], content["cuda"],
        )  # fmt: skip
    except OSError as error:
        raise UsageError(f"cannot read {file}", said=error.strerror) from None
    except (ValueError, LookupError, TypeError) as error:
        raise UsageError(
            f"{file} is no file of `runyard doctor --share`",
            said=f"{type(error).__name__}: {error}",
        ) from None


def _names_here(
    hosts: Sequence[str],
    node: Mapping[str, Any] | None,
    flags: Flags = NO_FLAGS,
    profile: str = GENERIC,
    folders: Sequence[Path] = (),
) -> StandIns:
    """Of the person who asks and what they ask for, of this machine, and of the node that
    answered."""
    names = StandIns()
    for user in _users():
        names.of("user", user)
    for host in (*hosts, *_hosts_of(node)):
        names.of("host", host)
    for group in _groups():
        names.of("group", group)
    for kind in ("account", "partition", "qos", "reservation", "constraint"):
        names.of(kind, flags[f"resources.{kind}"] or "")
    extra = [option.partition("=")[2] for option in flags["resources.extra"] or ()]
    names.hide(extra, shortest=3)
    if profile != GENERIC:
        names.of("cluster", profile)
    places = [*folders, sys.prefix, sys.executable, *os.environ.values()]
    names.folders(str(place) for place in places)
    names.hide(_full_name(), shortest=4)
    secrets = [
        value for name, value in os.environ.items() if any(word in name.upper() for word in _SECRET)
    ]
    names.hide(secrets, shortest=8)
    return names


def _users() -> Iterator[str]:
    with contextlib.suppress(KeyError):
        yield pwd.getpwuid(os.getuid()).pw_name
    with contextlib.suppress(KeyError, OSError):
        yield getpass.getuser()


def _hosts_of(node: Mapping[str, Any] | None) -> Iterator[str]:
    host = ((node or {}).get("node") or {}).get("host")
    if isinstance(host, str):
        yield host
        yield host.partition(".")[0]


def _groups() -> Iterator[str]:
    for number in os.getgroups():
        with contextlib.suppress(KeyError):
            yield grp.getgrgid(number).gr_name


def _full_name() -> list[str]:
    try:
        whole = pwd.getpwuid(os.getuid()).pw_gecos.partition(",")[0]
    except KeyError:
        return []
    return [whole, *whole.split()]


def _finding(finding: Finding, names: StandIns) -> dict[str, Any]:
    if finding.group in _PRIVATE_GROUPS:
        return {"group": finding.group, "name": finding.name, "state": finding.state}
    shown: dict[str, Any] = names.values(asdict(finding))
    return shown
