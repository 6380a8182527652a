"""A short job that looks at the cluster from the inside.

Each folder that jobs will need is marked with a folder of ours; the job says which marks its node
sees, and leaves its answer in those. So the answer also tells which folders are shared.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from runyard.clusters.profile import Profile
from runyard.clusters.site_checks import CONTAINER_PROGRAMS
from runyard.proof import LOOPBACK
from runyard.schedulers.doctor import Outcome, ProbeRequest
from runyard.schedulers.errors import SchedulerError
from runyard.schedulers.protocol import POLL_SECONDS
from runyard.schedulers.slurm.doctor import node_probe
from runyard.schedulers.slurm.queue import cancel, poll
from runyard.schedulers.slurm.sending import send
from runyard.schedulers.slurm.variables import clean_environment

MARK = ".runyard-doctor-"
OUTSIDE = (("api.wandb.ai", 443), ("github.com", 443))
_LOOK_SECONDS = 0.5
_ANSWER_SECONDS = 15.0
# A network file system may show a file this long after it was written.
_LATE_SECONDS = 15.0


def probe_script(asked: Mapping[str, Any], python: str, path: Sequence[str]) -> str:
    """The job's script: it finds a Python, and lets it look. Nothing secret is in it."""
    marks = " ".join(shlex.quote(place) for place in asked["marks"].values())
    more = "".join(f"PATH={shlex.quote(folder)}:$PATH\n" for folder in path)
    code = Path(node_probe.__file__).read_text(encoding="utf-8")
    return f"""\
#!/bin/sh
# runyard doctor: what does a compute node see?
{more}for python in {shlex.quote(python)} python3 python; do
  if command -v "$python" > /dev/null 2>&1; then
    exec "$python" - {shlex.quote(json.dumps(asked))} << 'END_OF_PROBE'
{code}
END_OF_PROBE
  fi
done
for mark in {marks}; do
  if [ -d "$mark" ]; then
    printf '{{"node": {{"host": "%s", "python": null}}}}' "$(hostname)" > "$mark/answer.json"
  fi
done
"""


@contextlib.contextmanager
def marked(folders: Mapping[str, Path]) -> Iterator[dict[str, str]]:
    """A folder of ours in each folder, while the job looks for it; where we may not write, none."""
    made: dict[str, str] = {}
    try:
        for name, folder in folders.items():
            with contextlib.suppress(OSError):
                mark = tempfile.mkdtemp(prefix=MARK, dir=folder)
                made[name] = mark
                (Path(mark) / "here").touch()
        yield made
    finally:
        for mark in made.values():
            shutil.rmtree(mark, ignore_errors=True)


def run_probe(
    environ: Mapping[str, str],
    profile: Profile,
    options: Sequence[str],
    wanted: ProbeRequest,
) -> Outcome:
    """Submit the job, wait for its answer, and leave nothing behind, however it ends."""
    with marked(wanted.folders) as marks:
        if not marks:
            return Outcome(None, "none of the project's folders can be written")
        question = {
            "marks": marks,
            "python": sys.executable,
            "local": profile.storage.local,
            "outside": OUTSIDE,
            "loopback": LOOPBACK,
            "home": str(wanted.home),
            "keys": list(wanted.keys),
            "programs": [*CONTAINER_PROGRAMS, "srun", "nvidia-smi"],
        }
        text = probe_script(question, sys.executable, profile.script.path)
        names = [option.lstrip("-").partition("=")[0] for option in options]
        clean = clean_environment(environ, names)
        key = next(iter(marks.values()))
        try:
            sent = send(text, key, options=options, environ=clean, notice=wanted.say)
        except SchedulerError as error:
            return Outcome(None, error.what, error.mend)
        if not sent.is_good:
            return Outcome(None, f"Slurm did not take the job: {sent.words}",
                           "give what the site wants: --partition, --account, --qos")  # fmt: skip
        job_id = sent.output
        try:
            return _wait(environ, job_id, [Path(mark) for mark in marks.values()], wanted)
        finally:
            with contextlib.suppress(SchedulerError):
                cancel([job_id], environ=environ)


def _wait(
    environ: Mapping[str, str],
    job_id: str,
    marks: Sequence[Path],
    wanted: ProbeRequest,
) -> Outcome:
    end, next_ask, reported = time.monotonic() + wanted.wait, 0.0, ""
    late: float | None = None
    while True:
        answers = _answer(marks)
        if answers is not None:
            return Outcome(answers, job_id=job_id)
        now = time.monotonic()
        if late is not None and now >= late:
            return Outcome(
                None,
                f"job {job_id} has ended, and its node left nothing in {_listed(marks)}: none of "
                "these folders is shared with it",
                "work in a folder that compute nodes see, and set RUNYARD_HOME to one",
                job_id,
            )
        if now >= next_ask:
            words = _words(environ, job_id)
            if words is None:
                late = late or now + _LATE_SECONDS
            elif words != reported:
                reported = words
                wanted.say(f"job {job_id} is {reported}")
            next_ask = now + POLL_SECONDS
        if now >= end and late is None:
            return Outcome(
                None,
                f"job {job_id} did not run within {wanted.wait:.0f} s ({reported})",
                "wait longer with --wait 30m, or ask for another --partition or --qos",
                job_id,
            )
        time.sleep(_LOOK_SECONDS)


def _words(environ: Mapping[str, str], job_id: str) -> str | None:
    """How the job stands, to be said; None: it has ended."""
    try:
        job = poll([job_id], environ, patience=0.0, seconds=_ANSWER_SECONDS)[job_id]
    except SchedulerError as error:
        return f"unknown ({error.said or error.what})"
    if not job.is_open:
        return None
    return f"{next(iter(job.states)).lower()}{f' ({job.reason})' if job.reason else ''}"


def _answer(marks: Sequence[Path]) -> Mapping[str, Any] | None:
    for mark in marks:
        try:
            list(mark.iterdir())  # Makes some network file systems look again.
            answers = json.loads((mark / "answer.json").read_text())
        except (OSError, ValueError):
            continue
        if isinstance(answers, dict):
            return answers
    return None


def _listed(marks: Sequence[Path]) -> str:
    return ", ".join(str(mark.parent) for mark in marks)
