"""What will be asked of the cluster, before anything is made."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard.actions.cluster.environments import builder
from runyard.actions.events import Notify, ignore, in_words
from runyard.actions.submitting.staging_check import check_staging
from runyard.actions.submitting.submission import ClusterOptions, Submission
from runyard.actions.tracking import require_key
from runyard.config.flags import NO_FLAGS, Flags
from runyard.errors import UsageError
from runyard.home import SOURCE, Home, locate, prepare

if TYPE_CHECKING:
    from runyard.actions.estimates import Subject
    from runyard.config.request import Request
    from runyard.launch.environments import Wrapping
    from runyard.launch.plan import Places, Plan
    from runyard.launch.snapshot import Snapshot

# Requests whose jobs are the tasks of an array.
_ARRAYS = ("sweep", "agents", "farm", "repeat", "retry")


@dataclass(frozen=True)
class SubmissionRequest:
    """Agents for a sweep that need not exist yet."""

    kind: str
    """What asks for them: sweep, agents, farm, repeat, retry, run, shell or gauge."""
    folder: Path
    """Where programs run."""
    trials: int | None
    flags: Flags = NO_FLAGS
    slots: int = 1
    cluster: ClusterOptions = field(default_factory=ClusterOptions)
    code: Mapping[str, Any] | None = None
    """The record of a snapshot that these agents are to run, in place of today's code."""
    subject: Callable[[Request], Subject] | None = None
    """Of what kind the trials are, where an estimate is wanted."""
    command_line: str | None = None
    """The program, where there is only one and no array."""


def plan_submission(wanted: SubmissionRequest, notify: Notify) -> Submission:
    """Everything that can be known before anything is made; refuses what the site would refuse."""
    from runyard.config.check import check
    from runyard.config.project_file import read_project
    from runyard.config.trial_shape import fit_array, fit_single
    from runyard.launch.plan import Interpreter, Work, plan
    from runyard.launch.settling_environment import settle_environment
    from runyard.schedulers.choice import cluster

    scheduler = cluster()
    if not wanted.cluster.dry_run:
        scheduler.demand()
    flags, folder, kind = wanted.flags, wanted.folder, wanted.kind
    if kind != "agents" and flags["sweep_id"]:
        raise UsageError(
            f"{flags.given['sweep_id'].option} is a sweep that is there, whose agents run its own "
            "program",
            mend="leave it or the program out",
        )
    request = scheduler.with_shell_options(read_project(folder, flags))
    shape_notes: list[str] = []
    if wanted.command_line is not None:
        request, shape_notes = fit_single(request, wanted.command_line)
    elif kind in _ARRAYS:
        request, shape_notes = fit_array(request, wanted.slots)
    checked = check(request)
    request, warned = scheduler.mind_maintenance(checked.accepted())
    require_key(request.tracking.server, request.tracking.key, notify)
    home = locate()
    copy, places = _find_places(wanted, request, home)
    check_staging(request, places)

    def settle(dry_run: bool) -> Wrapping:
        if not dry_run:
            prepare(home)  # It may be the first thing that comes into it.
        return settle_environment(
            request,
            work=places.work,
            builder=builder(),
            scheduler=scheduler,
            say=in_words(notify if not dry_run or wanted.cluster.dry_run else ignore),
            mounts=tuple(dict.fromkeys((str(places.project), str(places.source)))),
            dry_run=dry_run,
        )

    wrapping = settle(True)

    def make(agents: int | None) -> Plan:
        sized = request
        if agents is not None:
            sized = replace(request, agents=replace(request.agents, count=agents))
        return plan(
            sized,
            request.profile,
            work=Work(None, slots=wanted.slots, trials=wanted.trials, kind=kind),
            places=places,
            runyard=Interpreter(sys.executable, SOURCE),
            scheduler=scheduler,
            wrapping=wrapping,
            snapshot=wanted.code if copy is None else copy.record,
        )

    return Submission(
        plan=make(None),
        request=request,
        home=home,
        make=make,
        settle=settle,
        again=lambda: plan_submission(wanted, notify),
        copy=copy,
        notes=(*request.warnings, *shape_notes, *checked.notes, *warned),
        trials=wanted.trials,
        subject=None if wanted.subject is None else wanted.subject(request),
    )


def _find_places(
    wanted: SubmissionRequest, request: Request, home: Home
) -> tuple[Snapshot | None, Places]:
    from runyard.launch.places import check_home, site_scratch
    from runyard.launch.plan import Places
    from runyard.launch.snapshot import MANIFEST, find_stored, folder_of, look

    folder, code = wanted.folder, wanted.code
    scratch = site_scratch(request.profile, os.environ)
    check_home(request.profile, home.path, scratch, os.environ)
    token = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    job, root, copy, tree = home.path / "jobs" / token, request.folder, None, None
    if code is not None:
        tree = find_stored(home.path, str(code.get("digest")))
    elif wanted.cluster.copies_code:
        copy = look(root)
        tree = folder_of(home.path, copy)
    if tree is None:
        return None, Places(home.path, job, folder, root, root, scratch)
    packages = tree / "src" if copy is None or _has_packages(copy) else None
    return copy, Places(
        home=home.path,
        job=job,
        work=tree / folder.resolve().relative_to(root.resolve()),
        source=tree,
        project=root,
        scratch=scratch,
        manifest=tree.parent / MANIFEST,
        python_path=packages if copy is not None or (tree / "src").is_dir() else None,
    )


def _has_packages(copy: Snapshot) -> bool:
    return any(path.startswith("src/") and path.endswith("/__init__.py") for path in copy.files)
