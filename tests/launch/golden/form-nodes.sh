#!/bin/bash
#SBATCH --job-name=sweep-cats-base
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=4
#SBATCH --gres=gpu:1
#SBATCH --time=0-01:00:00
#SBATCH --signal=B:USR2@120
#SBATCH --open-mode=append
#SBATCH --output=/scratch/kim/cats/hpc_outputs/sweep-cats-base-%j.log
#SBATCH --chdir=/home/kim/.runyard/jobs/20261115-093000-abcdef

# Made by runyard VERSION: agents of one sweep. Which one is in job.json.
job=/home/kim/.runyard/jobs/20261115-093000-abcdef
if [ -z "${SLURM_JOB_ID:-}" ]; then
  echo "runyard: this is the script of a job; srun, which it may use, works in no other place" >&2
  echo "  try:  sbatch $0; or, for an allocation to run it in:  runyard shell, salloc" >&2
  exit 2
fi
umask o=  # Logs and results are not for every user of the cluster.
echo "runyard: $(date "+%Y-%m-%d %H:%M:%S"), job ${SLURM_JOB_ID:-none}${SLURM_ARRAY_TASK_ID:+ (task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_JOB_ID)} on $(hostname), ${SLURM_JOB_PARTITION:-no partition}, user $(id -un)"

# Places.
export RUNYARD_HOME=/home/kim/.runyard
export project_name=cats exp_name=base
export source_dir=/home/kim/.runyard/snapshots/d1gest-a1b2c3/cats
export scratch_dir=/scratch/kim/cats
mkdir -p "$scratch_dir/hpc_outputs" "$scratch_dir/$exp_name/checkpoints"
export SLURM_TMPDIR="${SLURM_TMPDIR:-}" RUNYARD_LOCAL=""
[ -n "$SLURM_TMPDIR" ] || RUNYARD_LOCAL="${TMPDIR:-/tmp}/runyard-$(id -u)/${SLURM_JOB_ID:-$$}-${SLURM_CLUSTER_NAME:-here}-%N"
case "$RUNYARD_LOCAL" in
  *%N) export SLURM_TMPDIR="${RUNYARD_LOCAL%??}${SLURMD_NODENAME:-}" ;;
  ?*) export SLURM_TMPDIR="$RUNYARD_LOCAL" ;;
esac
steward=(/home/kim/venvs/runyard/bin/python -I -S -c 'import sys; sys.path.insert(0, "/home/kim/venvs/runyard/lib"); from runyard.node.data.steward import main; sys.exit(main())' "$job/job.json")
[ -z "$RUNYARD_LOCAL" ] || "${steward[@]}" begin $$ bare || exit 1  # Makes the folder, brings the data.
if [ -n "$RUNYARD_LOCAL" ] && { [ ! -O "${RUNYARD_LOCAL%/*}" ] || [ -L "${RUNYARD_LOCAL%/*}" ]; }; then
  export SLURM_TMPDIR="$("${steward[@]}" where)"  # Somebody else has taken the usual name.
fi
if [ -n "${SLURM_CPUS_PER_TASK:-}" ]; then export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"; fi

# Variables of the cluster and the project.
export WANDB_GIT_COMMIT="c0mmit"

# The GPUs as the program finds them. A driver in trouble may not answer.
command -v nvidia-smi >/dev/null && timeout 30 nvidia-smi --format=csv,noheader \
  --query-gpu=index,name,memory.used,memory.total,utilization.gpu |
  sed 's/^/runyard: GPU /'
echo "runyard: CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES-not set}, modules ${LOADEDMODULES:-none}"

cd /home/kim/.runyard/snapshots/d1gest-a1b2c3/cats || {
  echo runyard: 'the folder /home/kim/.runyard/snapshots/d1gest-a1b2c3/cats is not on this node:' "$(hostname)" >&2
  exit 1
}
echo "runyard: in $PWD, Python $(command -v python || command -v python3 || echo none)"

# One agent a node. They end when no trial is left or the time is up; one that dies is
# told of, and the others go on. The job ends as they did.
agent=(/home/kim/venvs/runyard/bin/python -I -S -c 'import sys; sys.path.insert(0, "/home/kim/venvs/runyard/lib"); from runyard.node.agent.__main__ import main; sys.exit(main())' --job "$job/job.json")
on_node='
  trap "" USR2 TERM
  case "$RUNYARD_LOCAL" in
    *%N) SLURM_TMPDIR="${RUNYARD_LOCAL%??}$SLURMD_NODENAME" ;;
    ?*) SLURM_TMPDIR="$RUNYARD_LOCAL" ;;
  esac
  python="$1" start="$5" json="$6"; shift 6
  "$python" -I -S -c "$start" "$json" begin $$ alone || exit 1
  if [ -n "$RUNYARD_LOCAL" ] && { [ ! -O "${RUNYARD_LOCAL%/*}" ] || [ -L "${RUNYARD_LOCAL%/*}" ]; }; then SLURM_TMPDIR=$("$python" -I -S -c "$start" "$json" where); fi
  "$@" --output 3 3>&1
  code=$?
  "$python" -I -S -c "$start" "$json" end
  exit "$code"'
codes="$(mktemp -d "$job/codes.XXXXXX")" || exit 1
pass_on() { scancel --signal="$1" "$SLURM_JOB_ID" 2>/dev/null; }
trap 'pass_on USR2' USR2
trap 'pass_on TERM' TERM
processes=()
for node in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
  (
    trap '' USR2 TERM
    srun --nodes=1 --ntasks=1 --nodelist="$node" --kill-on-bad-exit=0 \
      --output=/scratch/kim/cats/hpc_outputs/sweep-cats-base-%j-"$node.log" --open-mode=append \
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
rm -rf "$codes"

# Whatever became of it.
/home/kim/venvs/runyard/bin/python -I -S -c 'import sys; sys.path.insert(0, "/home/kim/venvs/runyard/lib"); from runyard.node.data.bring_back import main; sys.exit(main())' /home/kim/.runyard/snapshots/d1gest-a1b2c3/manifest.json
[ ! -e /home/kim/.runyard/held/20261115-093000-abcdef.json ] || /home/kim/venvs/runyard/bin/python -m runyard agents send-held  # Agents that Slurm did not take at first.
"${steward[@]}" end  # Saves results, removes the folder.
echo "runyard: $(date "+%Y-%m-%d %H:%M:%S"), ended with code $code"
exit "$code"
