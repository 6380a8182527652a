"""Slurm's variables and commands in a job's script."""

from __future__ import annotations

import re

from runyard.schedulers.script_words import ScriptWords

# No line ends; Slurm expands % in names of files, and has its own rules for quotes and backslashes.
_PLAIN = re.compile(r"[^\x00-\x1f\x7f\"'\\%`$#]*")
_OUTSIDE = """\
if [ -z "${SLURM_JOB_ID:-}" ]; then
  echo "runyard: this is the script of a job; srun, which it may use, works in no other place" >&2
  echo "  try:  sbatch $0; or, for an allocation to run it in:  runyard shell, salloc" >&2
  exit 2
fi"""
# A shell is a step on the first node, and an srun that is typed in it takes over the step's counts.
_WHOLE_JOB = (
    "# srun and programs find all nodes of the job, not only the one of this shell.",
    "for name in $(env | sed -n 's/^\\(SLURM_STEP[A-Z_]*\\|SLURM_CPU_BIND[A-Z_]*\\)=.*/\\1/p'); do",
    "  unset $name",
    "done",
    "unset SLURM_TASKS_PER_NODE SLURM_NTASKS_PER_NODE SLURM_DISTRIBUTION",
    'nodes=$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%N)',
    'count=$(scontrol show hostnames "$nodes" | wc -l)',
    # From 24.11 on srun inherits the CPUs of a task, and waits for ever where it has to guess how
    # many tasks there are ("Requested nodes are busy").
    'tasks=$(squeue --noheader --jobs="$SLURM_JOB_ID" --Format=NumTasks | tr -d " ")',
    "export SLURM_JOB_NODELIST=$nodes SLURM_NODELIST=$nodes",
    "export SLURM_JOB_NUM_NODES=$count SLURM_NNODES=$count",
    "export SLURM_NTASKS=$tasks SLURM_NPROCS=$tasks",
)
_EACH_NODE = """\
codes="$(mktemp -d "$job/codes.XXXXXX")" || exit 1
pass_on() { scancel --signal="$1" "$SLURM_JOB_ID" 2>/dev/null; }
trap 'pass_on USR2' USR2
trap 'pass_on TERM' TERM
processes=()
for node in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
  (
    trap '' USR2 TERM
    srun --nodes=1 --ntasks=1 --nodelist="$node" --kill-on-bad-exit=0{log} \\
      sh -c "$on_node" agent "${steward[@]}" "${agent[@]}"
    code=$?
    echo "$code" >"$codes/$node"
    [ "$code" = 0 ] || echo "runyard: the agent on $node ended with code $code" >&2
  ) &
  processes+=($!)
done
for process in "${processes[@]}"; do
  while kill -0 "$process" 2>/dev/null; do wait "$process"; done
done
code=0
for node in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
  one="$(cat "$codes/$node" 2>/dev/null || echo 1)"
  [ "$one" = 0 ] || code="$one"
done
rm -rf "$codes"\
"""

WORDS = ScriptWords(
    title="Slurm",
    plain=_PLAIN,
    outside=_OUTSIDE,
    job="SLURM_JOB_ID",
    own="SLURM_JOB_ID",
    array_job="SLURM_ARRAY_JOB_ID",
    array_task="SLURM_ARRAY_TASK_ID",
    nodes="SLURM_JOB_NODELIST",
    node="SLURMD_NODENAME",
    partition="SLURM_JOB_PARTITION",
    cluster="SLURM_CLUSTER_NAME",
    disk="SLURM_TMPDIR",
    handed_on=("SLURM",),
    # Since 22.05 srun does not take it over from the batch job.
    for_steps=(
        'if [ -n "${SLURM_CPUS_PER_TASK:-}" ]; then '
        'export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"; fi',
    ),
    whole_job=_WHOLE_JOB,
    restarts="SLURM_RESTART_COUNT",
    requeue='scontrol requeue "$SLURM_JOB_ID"',
    each_node=_EACH_NODE,
    pushed_out='squeue --noheader --jobs="$SLURM_JOB_ID" --Format=PreemptTime:24 2>/dev/null',
    # Not %N: one host may be several nodes.
    node_log=' \\\n      --output={path}"$node.log" --open-mode=append',
)
