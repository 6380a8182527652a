"""Grid Engine's variables and commands in a job's script."""

from __future__ import annotations

import re

from runyard.schedulers.script_words import ScriptWords

WORDS = ScriptWords(
    title="Grid Engine",
    # Options are told apart by spaces, and $ begins a variable.
    plain=re.compile(r"[^\x00-\x20\x7f\"'\\%`$#:,*?]*"),
    outside="""\
if [ -z "${SGE_TASK_ID:-}" ]; then
  echo "runyard: this is the script of a job" >&2
  echo "  try:  qsub $0" >&2
  exit 2
fi""",
    opening=(
        "array_task=${SGE_TASK_ID#undefined}",
        "own_id=$JOB_ID${array_task:+.$array_task}",
        # Where the daemon that starts jobs is setuid, the loader takes TMPDIR from it, and not TMP.
        'case "${TMPDIR:-}:${TMP:-}" in :*/"$JOB_ID".*) export TMPDIR="$TMP" ;; esac',
    ),
    job="JOB_ID",
    own="own_id",
    array_job="JOB_ID",
    array_task="array_task",
    nodes="HOSTNAME",
    node="HOSTNAME",
    partition="QUEUE",
    cluster="SGE_CELL",
    disk="TMPDIR",
    handed_on=("SGE_", "JOB_ID", "NSLOTS"),
)
