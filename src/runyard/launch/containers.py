"""Kinds of containers, as data: how each mounts, is given variables, and starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from runyard.launch.container_script import Box, Container, launcher_text
from runyard.launch.shell_words import quote


def container_launcher(kind: Container, box: Box) -> tuple[str, ...]:
    """The words before a program's own."""
    return ("/bin/sh", "-c", launcher_text(kind, box), "runyard-container")


def container_header(kind: Container, box: Box) -> tuple[str, ...]:
    """What has to be said when the job is submitted."""
    if kind.name != "shifter":
        return ()
    # Shifter prepares an image when the job starts, where it and its modules are named then.
    flag = _gpu_flag(box, _SHIFTER_GPU)
    return (f"--image={box.image}", *([flag] if flag.startswith("--module=") else []))


_SHIFTER_GPU = "--module=gpu"


def _gpu_flag(box: Box, usual: str) -> str:
    """The profile's flag; `--nv` is Apptainer's and what profiles have where they say nothing."""
    return (usual if box.gpu_flag == "--nv" else box.gpu_flag) or ""


def _gpu(box: Box, usual: str) -> str:
    return f" {quote(_gpu_flag(box, usual))}" if box.gpu_flag else ""


# Variables by variables of the program's own: APPTAINERENV_NAME is NAME inside.
_CARRY_BY_PREFIX = """
program=apptainer prefix=APPTAINERENV
command -v apptainer >/dev/null 2>&1 || { program=singularity; prefix=SINGULARITYENV; }
for name in $names; do
  [ "$name" = HOME ] || eval "export ${prefix}_$name=\\"\\$$name\\""
done
# A shell inside would expand $ and run what stands in backticks.
export APPTAINER_NO_EVAL=1 SINGULARITY_NO_EVAL=1"""
# By name: the values are those around it.
_CARRY_BY_NAME = """
for name in $names; do set -- "--env=$name" "$@"; done"""
# By name as well, in one word. The program is started by a step within the step: the scheduler sets
# its own numbers and GPUs there, so those of our surroundings have a second name until then.
_CARRY_BY_LIST = """
kept=
for name in $names; do
  case $name in {patterns})
    eval "export RUNYARD_KEPT_$name=\\"\\$$name\\""
    kept="$kept $name";;
  esac
done
export RUNYARD_KEPT="$kept"
list=$(echo $names RUNYARD_KEPT $(printf 'RUNYARD_KEPT_%s ' $kept) | tr ' ' ,)
set -- /bin/sh -c {restore} runyard-restore "$@"
"""
_GPU_NAMES = (
    "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
)  # fmt: skip
# In the image: what the inner step set goes, and what was kept has its own name again.
_RESTORE = """\
unset $(env | grep -oE '^({prefixes})[A-Za-z0-9_]*')
for name in $RUNYARD_KEPT; do
  eval "export $name=\\"\\$RUNYARD_KEPT_$name\\""
  unset "RUNYARD_KEPT_$name"
done
unset RUNYARD_KEPT
exec "$@"
"""
# By a file in the box that only we can read.
_CARRY_BY_FILE = """
( umask 077; : >"$box/variables" )
for name in $names; do
  eval "value=\\$$name"
  case $value in
    *'
'*) say "the variable $name has several lines and stays outside";;
    *) printf '%s=%s\\n' "$name" "$value" >>"$box/variables";;
  esac
done"""


def _start_apptainer(box: Box) -> str:
    # --home says what HOME is inside, which it takes from passwd otherwise; it mounts nothing here.
    # --contain leaves InfiniBand out, and NCCL would then take the slow network without a word.
    return (
        'if [ -d /dev/infiniband ]; then set -- --bind /dev/infiniband "$@"; fi\n'
        f'exec "$program" exec{_gpu(box, "--nv")} --cleanenv --no-home --contain --writable-tmpfs '
        f'--home "$box/home:$HOME" --pwd {quote(box.work)} "$@"'
    )


def _start_shifter(box: Box) -> str:
    return (
        f'exec shifter --image="$image"{_gpu(box, _SHIFTER_GPU)} --clearenv '
        f'--env-file="$box/variables" --workdir={quote(box.work)} "$@"'
    )


def _start_podman(program: str, gpu_flag: str) -> Callable[[Box], str]:
    def start(box: Box) -> str:
        return (
            f"exec {program} run --rm{_gpu(box, gpu_flag)} --network=host --entrypoint=/bin/sh "
            f'--workdir={quote(box.work)} "$@"'
        )

    return start


def _start_pyxis(box: Box) -> str:
    handed_on = box.words.handed_on
    patterns = "|".join((*(f"{prefix}*" for prefix in (*handed_on, "PMI")), *_GPU_NAMES))
    restore = quote(_RESTORE.format(prefixes="|".join(handed_on)))
    return (
        f"{_CARRY_BY_LIST.format(patterns=patterns, restore=restore).strip()}\n"
        # On the node that it is called on: ranks are on all of them.
        f'exec srun --nodes=1 --ntasks=1 --overlap --nodelist="${box.words.node}" '
        '--export="$list" --container-image="$image" '
        f'--container-mounts="${{mounts%,}}" --container-workdir={quote(box.work)} '
        '--no-container-mount-home --container-env="$list" "$@"'
    )


def _start_charliecloud(box: Box) -> str:
    # The image's own variables come first; ours win. What TMPDIR names is mounted at /tmp.
    return (
        'set -- --set-env="$box/variables" "$@"\n'
        'if [ -f "$image/ch/environment" ]; then set -- --set-env "$@"; fi\n'
        'set -- --set-env=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"\n'
        'export TMPDIR="$box/tmp"\n'
        f"exec ch-run --env-no-expand --cd={quote(box.work)} --unset-env='*' \"$@\""
    )


CONTAINERS: Mapping[str, Container] = {
    kind.name: kind
    for kind in (
        Container(
            name="apptainer",
            programs=("apptainer", "singularity"),
            install="load its module (containers.module in the profile), or ask the site for it",
            mount='set -- --bind "$from:$to$mode" "$@"',
            image_word='set -- "$image" "$@"',
            mounts_home=True,
            carry=_CARRY_BY_PREFIX,
            start=_start_apptainer,
            look=("exec", "{image}"),
            pull=(
                '"$(command -v apptainer || command -v singularity)"',
                "pull",
                "{file}",
                "{image}",
            ),
        ),
        Container(
            name="shifter",
            programs=("shifter",),
            install="sites that have Shifter have it on every node",
            carry=_CARRY_BY_FILE,
            start=_start_shifter,
            look=("--image={image}",),
            pull=("shifterimg", "pull", "{image}"),
            has_names=True,
        ),
        Container(
            name="podman-hpc",
            programs=("podman-hpc",),
            install="sites that have podman-hpc have it on every node",
            # Its entry point is the shell that stands first in the command.
            image_word='shift; set -- "$image" "$@"',
            carry=_CARRY_BY_NAME,
            start=_start_podman("podman-hpc", "--gpu"),
            look=("run", "--rm", "{image}"),
            pull=("podman-hpc", "pull", "{image}"),
            has_names=True,
        ),
        Container(
            name="podman",
            programs=("podman",),
            install="install the package podman, or ask the site for it",
            image_word='shift; set -- "$image" "$@"',
            carry=_CARRY_BY_NAME,
            # As NVIDIA's container toolkit names all GPUs (CDI).
            start=_start_podman("podman", "--device=nvidia.com/gpu=all"),
            look=("run", "--rm", "{image}"),
            pull=("podman", "pull", "{image}"),
            has_names=True,
        ),
        Container(
            name="pyxis",
            programs=("srun",),
            install="pyxis is a part of Slurm, at sites that have it",
            mount='mounts="$from:$to$mode,${mounts:-}"',
            carry="",
            start=_start_pyxis,
            pull=("enroot", "import", "--output", "{file}", "{image}"),
        ),
        Container(
            name="charliecloud",
            programs=("ch-run",),
            install="install the package charliecloud, or load its module",
            mount='set -- "--bind=$from:$to" "$@"',
            image_word='set -- "$image" -- "$@"',
            mount_point='  [ -n "$place" ] || [ ! -d "$image" ] || mkdir -p "$image$to"',
            mounts_tmp=False,
            carry=_CARRY_BY_FILE,
            start=_start_charliecloud,
            look=("{image}", "--"),
            pull=("ch-image", "pull", "{image}"),
            has_names=True,
        ),
    )
}
