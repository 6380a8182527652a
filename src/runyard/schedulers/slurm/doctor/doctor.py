"""Slurm's part of `runyard doctor`."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from runyard.clusters.asking import Answer, Ask, asker, recording
from runyard.clusters.findings import Finding
from runyard.clusters.place import Recognised
from runyard.clusters.profile import Profile
from runyard.clusters.stand_ins import StandIns
from runyard.config.request import Request
from runyard.schedulers.doctor import Outcome, ProbeRequest, Site
from runyard.schedulers.slurm.doctor.checks import check_slurm
from runyard.schedulers.slurm.doctor.draft import draft, draft_name
from runyard.schedulers.slurm.doctor.node_checks import check_nodes
from runyard.schedulers.slurm.doctor.probe_job import run_probe
from runyard.schedulers.slurm.doctor.shared_answers import without_names
from runyard.schedulers.slurm.facts import gather
from runyard.schedulers.slurm.header import option_words, put_together
from runyard.schedulers.slurm.settings import GPU_OPTIONS
from runyard.schedulers.slurm.values import clock

_SECONDS = 300.0


class SlurmDoctor:
    def __init__(
        self, environ: Mapping[str, str], ask: Ask | None = None, user: str | None = None
    ) -> None:
        self._environ = environ
        self._asked: list[tuple[tuple[str, ...], Answer]] = []
        noting = recording(ask or asker(environ), self._asked)
        self.user = user or _user(environ)
        self._facts = gather(noting, self.user)

    @property
    def is_here(self) -> bool:
        return self._facts.is_here

    @property
    def facts(self) -> dict[str, Any]:
        return {name: fact for name, fact in asdict(self._facts).items() if name != "config"}

    def check(self, profile: Profile, here: Recognised) -> Iterator[Finding]:
        return check_slurm(self._facts, profile, here)

    def share(self, names: StandIns) -> list[dict[str, Any]]:
        own = f"user={self.user}"
        stand_in = f"user={names.of('user', self.user)}"
        answers = [
            (
                [stand_in if word == own else word for word in words],
                answer,
                without_names(words, answer.text, names),
            )
            for words, answer in self._asked
        ]
        # What commands complain of comes last: by then every name is known.
        return [
            {
                "command": " ".join(words),
                "answer": text,
                "trouble": names.values(answer.trouble),
                "is_missing": answer.is_missing,
            }
            for words, answer, text in answers
        ]

    def look_from_inside(self, request: Request, profile: Profile, wanted: ProbeRequest) -> Outcome:
        header = put_together(_options(request, profile))
        return run_probe(self._environ, profile, option_words(header), wanted)

    def check_nodes(
        self, outcome: Outcome, profile: Profile, folders: Mapping[str, str]
    ) -> Iterator[Finding]:
        return check_nodes(outcome, profile, folders)

    def draft(self, site: Site) -> tuple[str, str]:
        return draft_name(self._facts, site.host), draft(self._facts, site)


def _user(environ: Mapping[str, str]) -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return environ.get("USER") or str(os.getuid())


def _options(request: Request, profile: Profile) -> Iterator[str]:
    """A short job with one task, let in by whatever the site wants to see."""
    resources = request.resources
    limit = profile.limit(resources.partition, resources.qos)
    shortest = 0.0 if profile.limits.test_job else limit.shortest or 0.0
    seconds = max(min(_SECONDS, limit.longest or _SECONDS), shortest)
    yield "--job-name=runyard-doctor"
    yield f"--time={clock(seconds)}"
    yield "--nodes=1"
    yield "--ntasks=1"
    yield f"--output={os.devnull}"
    yield "--chdir=/"
    yield "--export=NONE"
    for name in ("partition", "account", "qos", "constraint", "reservation"):
        value = getattr(resources, name)
        if value is not None:
            yield f"--{name}={value}"
    if "resources.gpus" in request.origins and resources.gpus and profile.gpus.form != "none":
        kind = f"{resources.gpu_type}:" if resources.gpu_type else ""
        gpus = GPU_OPTIONS[profile.gpus.form].format(kind)
        yield f"{gpus}{resources.gpus}"
    yield from profile.submission.always
    yield from resources.extra
