# A box on the node's own disk: home, temporary files, work, database. Old boxes go.
say() { echo "runyard: $*" >&2; }
disk=${SLURM_TMPDIR:-${TMPDIR:-/tmp}}
mine="$disk/runyard-box-$(uname -n)-"
for old in "$mine"*; do
  owner=${old#"$mine"}
  if [ -O "$old" ] && ! kill -0 "${owner%%-*}" 2>/dev/null; then rm -rf -- "$old"; fi
done
box=$(mktemp -d "$mine$$-XXXXXX") || { say "no room for a program's folders in $disk"; exit 126; }
mkdir "$box/home" "$box/tmp" "$box/work" "$box/db"
case ${HOME:-/} in /) HOME="$box/home";; esac  # Some sites' jobs have none.
export work_dir="$box/work" db_dir="$box/db" USER="${USER:-$(id -un)}"
# The image, on the node's own disk: the first program on a node copies it, the others wait.
image='/images/it'"'"'s.sif'
# A disk in memory would be charged to the job, with all of the image.
case $(stat -f -c %T "$disk" 2>/dev/null) in tmpfs|ramfs) in_memory=1;; *) in_memory=;; esac
if [ -f "$image" ] && [ -n "$in_memory" ]; then
  say "$disk is in memory: the image is read from $image"
elif [ -f "$image" ]; then
  images="$disk/runyard-images-$(id -u)"
  copy="$images/$(stat -c %i-%Y-%s "$image")-${image##*/}"
  mkdir -p -m 700 "$images"
  if [ ! -f "$copy" ] && [ -O "$images" ]; then
    (
      flock 9 2>/dev/null
      [ -f "$copy" ] || { cp -- "$image" "$copy.$$" && mv -- "$copy.$$" "$copy"; }
    ) 9>"$copy.lock" || {
      rm -f -- "$copy.$$"
      say "no room for the image in $images: it is read from $image"
    }
  fi
  if [ -f "$copy" ] && [ -O "$images" ]; then image=$copy; fi
fi
# The image's own start script, where it has one, gets the command as it is.
set -- /bin/sh -c 'for start in /runyard-start /.singularity.d/runscript; do
  [ -x "$start" ] || continue
  grep -q '"'"'OCI_RUN\|no runscript defined\|^exec /bin/bash "\$@"$'"'"' "$start" && continue
  grep -q '"'"'\$[@*]'"'"' "$start" && exec "$start" "$@"
done
exec "$@"
' runyard-start "$@"
# Mounts: each folder where it is outside. The last that is named here is mounted first.
seen=:
let_in() {
  from=$1 to=${2:-$1} mode=${3:+:$3}
  if [ -z "$from" ] || [ ! -e "$from" ]; then return 1; fi
  case $seen in *":$to:"*) return 1;; esac
  case $from$to in
    *,*|*:*) say "a container cannot mount $from: , or : in its name"; exit 126;;
  esac
  seen="$seen$to:"
  # What lies below a folder of the box needs a place in it.
  case $to in
    /tmp/*) place="$box$to";;
    *) place=;;
  esac
  [ -z "$place" ] || [ -e "$place" ] || if [ -d "$from" ]; then mkdir -p "$place"
  else mkdir -p "${place%/*}" && : >"$place"; fi
}
let_in "/data" "/data" "" && mounts="$from:$to$mode,${mounts:-}"
let_in "${SCRATCH}/d" "/d" ro && mounts="$from:$to$mode,${mounts:-}"
let_in '/p/my project' "" "" && mounts="$from:$to$mode,${mounts:-}"
let_in "${RUNYARD_STOP_FILE%/*}" "" "" && mounts="$from:$to$mode,${mounts:-}"
let_in "${WANDB_DIR:-}" "" "" && mounts="$from:$to$mode,${mounts:-}"
let_in "${SLURM_TMPDIR:-}" "" "" && mounts="$from:$to$mode,${mounts:-}"
let_in "${scratch_dir:-}" "" "" && mounts="$from:$to$mode,${mounts:-}"
let_in "${PYTHONUSERBASE:-}" "" "" && mounts="$from:$to$mode,${mounts:-}"
let_in "${CUDA_MPS_PIPE_DIRECTORY:-}" "" "" && mounts="$from:$to$mode,${mounts:-}"
let_in "$box/work" "/workdir" "" && mounts="$from:$to$mode,${mounts:-}"
let_in "$box" "" "" && mounts="$from:$to$mode,${mounts:-}"
let_in "$box/tmp" /var/tmp "" && mounts="$from:$to$mode,${mounts:-}"
let_in "$box/tmp" /tmp "" && mounts="$from:$to$mode,${mounts:-}"
# Variables: the tracker's, Slurm's, the job's places, which GPUs are ours; no others.
export HOME="$box/home" TMPDIR=/tmp
names=$(awk 'BEGIN { for (name in ENVIRON)
  if (name ~ /^[A-Za-z_][A-Za-z0-9_]*$/ && name ~ /^WANDB_|^RUNYARD_|^SLURM|^PMI|^NCCL_|^GLOO_|^TORCH_NCCL_|^CUDA_VISIBLE_DEVICES$|^CUDA_DEVICE_ORDER$|^CUDA_MPS_PIPE_DIRECTORY$|^CUDA_MPS_LOG_DIRECTORY$|^CUDA_MPS_ACTIVE_THREAD_PERCENTAGE$|^NVIDIA_VISIBLE_DEVICES$|^ROCR_VISIBLE_DEVICES$|^HIP_VISIBLE_DEVICES$|^GPU_DEVICE_ORDINAL$|^OMP_NUM_THREADS$|^RANK$|^WORLD_RANK$|^WORLD_SIZE$|^LOCAL_RANK$|^LOCAL_WORLD_SIZE$|^NODE_RANK$|^MASTER_ADDR$|^MASTER_PORT$|^JAX_COORDINATOR_ADDRESS$|^source_dir$|^project_name$|^scratch_dir$|^exp_name$|^data_dir$|^PYTHONUNBUFFERED$|^PYTHONUSERBASE$|^XLA_FLAGS$|^XLA_PYTHON_CLIENT_MEM_FRACTION$|^XLA_PYTHON_CLIENT_PREALLOCATE$|^http_proxy$|^https_proxy$|^HTTP_PROXY$|^HTTPS_PROXY$|^no_proxy$|^NO_PROXY$|^TZ$|^LANG$|^HOME$|^TMPDIR$|^work_dir$|^db_dir$|^MINE$/) print name }')
kept=
for name in $names; do
  case $name in SLURM*|PMI*|CUDA_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES|ROCR_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL)
    eval "export RUNYARD_KEPT_$name=\"\$$name\""
    kept="$kept $name";;
  esac
done
export RUNYARD_KEPT="$kept"
list=$(echo $names RUNYARD_KEPT $(printf 'RUNYARD_KEPT_%s ' $kept) | tr ' ' ,)
set -- /bin/sh -c 'unset $(env | grep -oE '"'"'^(SLURM)[A-Za-z0-9_]*'"'"')
for name in $RUNYARD_KEPT; do
  eval "export $name=\"\$RUNYARD_KEPT_$name\""
  unset "RUNYARD_KEPT_$name"
done
unset RUNYARD_KEPT
exec "$@"
' runyard-restore "$@"
exec srun --nodes=1 --ntasks=1 --overlap --nodelist="$SLURMD_NODENAME" --export="$list" --container-image="$image" --container-mounts="${mounts%,}" --container-workdir='/p/my project' --no-container-mount-home --container-env="$list" "$@"
