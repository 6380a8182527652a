"""An examination of the cluster, the project, and what jobs can reach."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runyard.actions.cluster.probe import look_from_inside
from runyard.actions.cluster.project_checks import check_project
from runyard.actions.cluster.sharing import Shared, read_shared, write_shared
from runyard.actions.events import Notify, ignore
from runyard.clusters.asking import asker
from runyard.clusters.findings import Finding
from runyard.clusters.load import GENERIC, load_profile, profile_folders
from runyard.clusters.place import Recognised, recognise, this_place
from runyard.clusters.profile import Profile
from runyard.clusters.site_checks import check_site, container_kinds, cuda_modules
from runyard.config.flags import Flags
from runyard.errors import StateError, UsageError
from runyard.home import locate, write_whole
from runyard.schedulers.choice import cluster, named
from runyard.schedulers.doctor import Doctor, Outcome, Site
from runyard.schedulers.protocol import Scheduler


@dataclass(frozen=True)
class DoctorRequest:
    """`job`: look from a compute node too, for at most `wait` seconds; `write`: draft a profile.

    `share`: write a file with the answers, without names. `read`: such a file, looked at in place
    of this cluster. `force`: over a file that is there.
    """

    flags: Flags
    folder: Path
    job: bool = False
    wait: float = 300.0
    write: bool = False
    share: Path | None = None
    read: Path | None = None
    force: bool = False


@dataclass(frozen=True)
class Examination:
    """`node`: what a compute node answered; `draft`: the profile that was written; `names`: how
    many have no place in the file that was."""

    cluster: Recognised
    profile: Profile
    findings: list[Finding]
    facts: Mapping[str, Any]
    """What the scheduler said."""
    node: Mapping[str, Any] | None
    draft: Path | None
    names: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "cluster": asdict(self.cluster),
            "findings": [asdict(finding) for finding in self.findings],
            "slurm": self.facts,
            "node": self.node,
            "draft": str(self.draft) if self.draft else None,
        }

    @property
    def fails(self) -> bool:
        return any(finding.state == "fail" for finding in self.findings)


def examine(request: DoctorRequest, notify: Notify = ignore) -> Examination:
    """Look at everything; nothing is changed but by `write` and `share`."""
    if request.read is not None:
        return _examine_shared(read_shared(request.read), request)
    if request.share is not None and request.share.exists() and not request.force:
        # Said before anything is asked: a job may take minutes.
        raise UsageError(f"{request.share} is there already", mend="name another, or add --force")
    flags = request.flags
    place = this_place()
    here = recognise(place)
    if flags["cluster"]:
        here = Recognised(flags["cluster"], "--cluster says so")
    profile = load_profile(here.name)
    scheduler, home = cluster(), locate()
    doctor = scheduler.doctor()
    findings = _unexamined(scheduler) if doctor is None else [*doctor.check(profile, here)]
    findings += check_site(profile, asker(os.environ), os.environ)
    findings += check_project(request.folder, flags, home)
    answers = None
    if request.job and doctor is not None and doctor.is_here:
        outcome, folders = look_from_inside(
            doctor, profile, flags, home, request.folder, request.wait, notify
        )
        answers = outcome.answers
        findings += doctor.check_nodes(outcome, profile, folders)
    elif request.job:
        findings.append(
            Finding("compute nodes", "job", "skip", f"without {scheduler.title} there are none")
        )
    written, names = None, 0
    if request.write or request.share is not None:
        cuda = cuda_modules(asker(os.environ), os.environ)
        site = Site(place.hosts[0], container_kinds(os.environ), cuda, answers)
    if request.write:
        written = _write(_needed(doctor), site, force=request.force)
    if request.share is not None:
        names = write_shared(
            request.share, scheduler.name, _needed(doctor), place.hosts, findings, site.node, flags,
            profile=profile.name, folders=[request.folder, home.path],
            containers=site.containers, cuda=site.cuda,
        )  # fmt: skip
    facts = {} if doctor is None else doctor.facts
    return Examination(here, profile, findings, facts, answers, written, names)


def _examine_shared(shared: Shared, request: DoctorRequest) -> Examination:
    """What `examine` would have found there, as far as the file tells."""
    named_profile = request.flags["cluster"]
    here = Recognised(named_profile or GENERIC, "the file is of a cluster without a name")
    profile = load_profile(here.name)
    doctor = _needed(named(shared.scheduler).doctor(shared.ask, shared.user))
    findings = [*doctor.check(profile, here)]
    if shared.node is not None:
        folders = dict.fromkeys(shared.node.get("folders") or {}, "the folder")
        findings += doctor.check_nodes(Outcome(shared.node, job_id="1"), profile, folders)
    written = None
    if request.write:
        site = Site("shared", shared.containers, shared.cuda, shared.node)
        written = _write(doctor, site, force=request.force)
    return Examination(here, profile, findings, doctor.facts, shared.node, written)


def _unexamined(scheduler: Scheduler) -> list[Finding]:
    says = f"{scheduler.title}'s own settings are not looked at"
    return [Finding("cluster", "scheduler", "skip", says)]


def _needed(doctor: Doctor | None) -> Doctor:
    if doctor is None or not doctor.is_here:
        raise UsageError(
            "there is no Slurm here to describe", mend="call it on a cluster's login node"
        )
    return doctor


def _write(doctor: Doctor, site: Site, *, force: bool) -> Path:
    name, text = doctor.draft(site)
    folder = profile_folders()[-2]
    file = folder / f"{name}.yaml"
    if file.exists() and not force:
        raise UsageError(
            f"there is a profile {file} already", mend="edit it, or write over it with --force"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(file, text)
        file.chmod(0o644)
    except OSError as error:
        raise StateError(f"cannot write {file}", said=error.strerror) from None
    load_profile(file.stem)  # What we write, we can read.
    return file
