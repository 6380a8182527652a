"""The short script that starts a program in a container, the same for every kind. Pure.

It runs on the node, once an attempt: it makes a box of folders on the node's own disk, has the
image there, and then *becomes* the container's program (`exec`), so that signals and exit codes are
the program's. What goes in is counted out: the mounts and variables below and no others. The key
goes in by a variable or by a file that only its owner can read, never by a command line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runyard.errors import ConfigError
from runyard.launch.shell_words import expandable, quote

if TYPE_CHECKING:
    from runyard.schedulers.script_words import ScriptWords

# Variables that programs need: the tracker's, ours, the scheduler's (job, process, array numbers),
# which GPUs are theirs, how ranks meet, and the places of the job. Everything else stays out.
_PREFIXES = ("PMI", "NCCL_", "GLOO_", "TORCH_NCCL_")
_NAMES = (
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_MPS_LOG_DIRECTORY", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "NVIDIA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "OMP_NUM_THREADS",
    "RANK", "WORLD_RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK",
    "MASTER_ADDR", "MASTER_PORT", "JAX_COORDINATOR_ADDRESS",
    "source_dir", "project_name", "scratch_dir", "exp_name", "data_dir",
    "PYTHONUNBUFFERED", "PYTHONUSERBASE", "XLA_FLAGS", "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_PREALLOCATE", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY",
    "no_proxy", "NO_PROXY", "TZ", "LANG", "HOME", "TMPDIR", "work_dir", "db_dir",
)  # fmt: skip
# Folders that variables name; each is mounted where it is, so that paths mean the same inside.
_FOLDERS_BY_NAME = ("scratch_dir", "PYTHONUSERBASE", "CUDA_MPS_PIPE_DIRECTORY")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True)
class Box:
    """What one program in a container needs."""

    image: str
    work: str
    """Where it starts."""
    words: ScriptWords
    """Of the scheduler in whose jobs it runs."""
    mounts: tuple[str, ...] = ()
    """`FOLDER`, `FOLDER:INSIDE` or `FOLDER:INSIDE:ro`; `${VARIABLES}` are the node's."""
    variables: tuple[str, ...] = ()
    """Names to pass besides ours."""
    workdir: str | None = None
    """A writable folder inside, on the node's own disk."""
    gpu_flag: str | None = None


@dataclass(frozen=True)
class Container:
    """One kind of container. The pieces are lines of the script below."""

    name: str
    programs: tuple[str, ...]
    """What starts it: the first of these that is there."""
    install: str
    start: Callable[[Box], str]
    """The last lines: what is exec'ed with `"$@"`, which is options and command by then."""
    carry: str
    """Hands the variables `$names` in."""
    mount: str = 'set -- "--volume=$from:$to$mode" "$@"'
    """Mounts `$from` at `$to`; `$mode` is empty or `:ro`."""
    image_word: str = ""
    """Puts the image before the command, where it stands there."""
    mount_point: str = ""
    """Makes a place for `$to` in the image, where that is not done by itself."""
    mounts_home: bool = False
    """Whether the box's home goes where the user's is; else HOME is in the box."""
    mounts_tmp: bool = True
    """Whether /tmp has to be mounted."""
    pull: tuple[str, ...] = ()
    """Fetches `{image}` before any job needs it, to `{file}` where it becomes a file."""
    has_names: bool = False
    """Whether a fetched image is known by its name, and is no file of ours."""
    look: tuple[str, ...] = ()
    """Runs a command in `{image}` where jobs are submitted, where that can be done."""


def launcher_text(kind: Container, box: Box) -> str:
    """The script. `"$@"` is the program's command, before which options and image are put."""
    sections = (
        _BOX.replace("DISK", box.words.disk),
        _IMAGE.format(image=quote(box.image)),
        _START.format(script=quote(_START_SCRIPT)),
        kind.image_word,
        _mounts(kind, box),
        _variables(kind, box),
        kind.carry,
        kind.start(box),
    )
    return "\n".join(section.strip("\n") for section in sections if section) + "\n"


_BOX = """
# A box on the node's own disk: home, temporary files, work, database. Old boxes go.
say() { echo "runyard: $*" >&2; }
disk=${DISK:-${TMPDIR:-/tmp}}
mine="$disk/runyard-box-$(uname -n)-"
for old in "$mine"*; do
  owner=${old#"$mine"}
  if [ -O "$old" ] && ! kill -0 "${owner%%-*}" 2>/dev/null; then rm -rf -- "$old"; fi
done
box=$(mktemp -d "$mine$$-XXXXXX") || { say "no room for a program's folders in $disk"; exit 126; }
mkdir "$box/home" "$box/tmp" "$box/work" "$box/db"
case ${HOME:-/} in /) HOME="$box/home";; esac  # Some sites' jobs have none.
export work_dir="$box/work" db_dir="$box/db" USER="${USER:-$(id -un)}"
"""

_IMAGE = """
# The image, on the node's own disk: the first program on a node copies it, the others wait.
image={image}
# A disk in memory would be charged to the job, with all of the image.
case $(stat -f -c %T "$disk" 2>/dev/null) in tmpfs|ramfs) in_memory=1;; *) in_memory=;; esac
if [ -f "$image" ] && [ -n "$in_memory" ]; then
  say "$disk is in memory: the image is read from $image"
elif [ -f "$image" ]; then
  images="$disk/runyard-images-$(id -u)"
  copy="$images/$(stat -c %i-%Y-%s "$image")-${{image##*/}}"
  mkdir -p -m 700 "$images"
  if [ ! -f "$copy" ] && [ -O "$images" ]; then
    (
      flock 9 2>/dev/null
      [ -f "$copy" ] || {{ cp -- "$image" "$copy.$$" && mv -- "$copy.$$" "$copy"; }}
    ) 9>"$copy.lock" || {{
      rm -f -- "$copy.$$"
      say "no room for the image in $images: it is read from $image"
    }}
  fi
  if [ -f "$copy" ] && [ -O "$images" ]; then image=$copy; fi
fi
"""

# A start script that somebody wrote for the image gets the command as it is. What image builders
# put there by themselves does not count: it runs something else, or nothing.
_START_SCRIPT = """\
for start in /runyard-start /.singularity.d/runscript; do
  [ -x "$start" ] || continue
  grep -q 'OCI_RUN\\|no runscript defined\\|^exec /bin/bash "\\$@"$' "$start" && continue
  grep -q '\\$[@*]' "$start" && exec "$start" "$@"
done
exec "$@"
"""
_START = """
# The image's own start script, where it has one, gets the command as it is.
set -- /bin/sh -c {script} runyard-start "$@"
"""

_LET_IN = """
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
HOME_CASE    *) place=;;
  esac
  [ -z "$place" ] || [ -e "$place" ] || if [ -d "$from" ]; then mkdir -p "$place"
  else mkdir -p "${place%/*}" && : >"$place"; fi
"""


def _mounts(kind: Container, box: Box) -> str:
    home = '    "$HOME"/*) place="$box/home/${to#"$HOME"/}";;\n' if kind.mounts_home else ""
    lines = [_LET_IN.strip("\n").replace("HOME_CASE", home)]
    lines += [kind.mount_point, "}"] if kind.mount_point else ["}"]

    def add(source: str, inside: str = '""', mode: str = '""') -> None:
        lines.append(f"let_in {source} {inside} {mode} && {kind.mount}")

    for mount in box.mounts:
        source, inside, mode = _read_mount(mount)
        add(f'"{expandable(source)}"', f'"{expandable(inside)}"', mode or '""')
    add(quote(box.work))
    add('"${RUNYARD_STOP_FILE%/*}"')
    for name in ("WANDB_DIR", box.words.disk, *_FOLDERS_BY_NAME):
        add(f'"${{{name}:-}}"')
    if box.workdir is not None:
        add('"$box/work"', f'"{expandable(box.workdir)}"')
    add('"$box"')
    if kind.mounts_home:
        add('"$box/home"', '"$HOME"')
    if kind.mounts_tmp:
        for inside in ("/var/tmp", "/tmp"):  # noqa: S108  (In the image.)
            add('"$box/tmp"', inside)
    return "\n".join(lines)


def _read_mount(text: str) -> tuple[str, str, str]:
    parts = text.split(":")
    mode = parts.pop() if len(parts) > 1 and parts[-1] in ("ro", "rw") else ""
    if not 1 <= len(parts) <= 2 or not all(parts):
        raise ConfigError(
            f"a mount cannot be {text!r}", mend="FOLDER, FOLDER:INSIDE or FOLDER:INSIDE:ro"
        )
    return parts[0], parts[-1], mode


def _variables(kind: Container, box: Box) -> str:
    for name in box.variables:
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"a container cannot be given a variable {name!r}",
                mend="names are letters, digits and _",
            )
    names = dict.fromkeys((*_NAMES, *box.variables))
    prefixes = ("WANDB_", "RUNYARD_", *box.words.handed_on, *_PREFIXES)
    pattern = "|".join((*(f"^{prefix}" for prefix in prefixes), *(f"^{name}$" for name in names)))
    home = "" if kind.mounts_home else 'HOME="$box/home" '
    return (
        f"# Variables: the tracker's, {box.words.title}'s, the job's places, "
        "which GPUs are ours; no others.\n"
        f"export {home}TMPDIR=/tmp\n"
        "names=$(awk 'BEGIN { for (name in ENVIRON)\n"
        f"  if (name ~ /^[A-Za-z_][A-Za-z0-9_]*$/ && name ~ /{pattern}/) print name }}')"
    )
