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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.clusters.asking import Ask
from runyard.clusters.profile import Profile
from runyard.clusters.site_checks import CONTAINER_PROGRAMS
from runyard.schedulers.slurm.doctor import node_probe

MARK = ".runyard-doctor-"
OUTSIDE = (("api.wandb.ai", 443), ("github.com", 443))
_LOOK_SECONDS = 0.5
_ASK_SECONDS = 2.0
# A network file system may show a file this long after it was written.
_LATE_SECONDS = 15.0
_GONE = ("", "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")


@dataclass(frozen=True)
class Outcome:
    """What the node said, or why it said nothing."""

    answers: Mapping[str, Any] | None
    trouble: str | None = None
    mend: str | None = None
    job_id: str | None = None


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
    ask: Ask,
    profile: Profile,
    *,
    options: Sequence[str],
    folders: Mapping[str, Path],
    home: Path,
    keys: Sequence[str],
    wait: float,
    say: Callable[[str], None],
) -> Outcome:
    """Submit the job, wait for its answer, and leave nothing behind, however it ends."""
    with marked(folders) as marks:
        if not marks:
            return Outcome(None, "none of the project's folders can be written")
        asked = {
            "marks": marks,
            "python": sys.executable,
            "local": profile.storage.local,
            "outside": OUTSIDE,
            "home": str(home),
            "keys": list(keys),
            "programs": [*CONTAINER_PROGRAMS, "srun", "nvidia-smi"],
        }
        script = Path(next(iter(marks.values()))) / "probe.sh"
        script.write_text(probe_script(asked, sys.executable, profile.script.path))
        sent = ask("sbatch", "--parsable", *options, str(script), seconds=60)
        if sent.trouble is not None:
            return Outcome(None, f"Slurm did not take the job: {sent.trouble}",
                           "give what the site wants: --partition, --account, --qos")  # fmt: skip
        job_id = sent.text.strip().splitlines()[-1].partition(";")[0]
        try:
            return _wait(ask, job_id, [Path(mark) for mark in marks.values()], wait, say)
        finally:
            ask("scancel", job_id)


def _wait(
    ask: Ask, job_id: str, marks: Sequence[Path], wait: float, say: Callable[[str], None]
) -> Outcome:
    end, next_ask, told = time.monotonic() + wait, 0.0, ""
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
            state, reason = _state(ask, job_id)
            if state in _GONE:
                late = late or now + _LATE_SECONDS
            elif f"{state} {reason}" != told:
                told = f"{state} {reason}"
                say(f"job {job_id} is {state.lower()}{f' ({reason})' if reason else ''}")
            next_ask = now + _ASK_SECONDS
        if now >= end and late is None:
            return Outcome(
                None,
                f"job {job_id} did not run within {wait:.0f} s ({told.lower()})",
                "wait longer with --wait 30m, or ask for another --partition or --qos",
                job_id,
            )
        time.sleep(_LOOK_SECONDS)


def _state(ask: Ask, job_id: str) -> tuple[str, str]:
    answer = ask("squeue", "--noheader", "--jobs", job_id, "--format=%T|%r")
    if not answer.ok and "Invalid job id" not in (answer.trouble or ""):
        return "UNKNOWN", answer.trouble or ""
    state, _, reason = answer.text.strip().partition("|")
    return state, "" if reason == "None" else reason


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
