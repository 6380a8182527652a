"""The job's script: text that a person can read, valid in bash and in zsh. Pure.

Every value is quoted. Nothing secret is in it: the agent finds server and key in the state folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.launch.script_agents import (
    STEWARD_ENDS,
    agent_on_each_node,
    clean_up,
    one_agent,
    start,
)
from runyard.launch.shell_words import expandable, module_lines, quote
from runyard.version import __version__

if TYPE_CHECKING:
    from runyard.clusters.profile import Profile
    from runyard.launch.plan import Places, Plan

# What stands in an #SBATCH line must be one line; Slurm expands % in names of files, and has rules
# of its own for quotes and backslashes.
_PLAIN = re.compile(r"[^\x00-\x1f\x7f\"'\\%`$#]*")


@dataclass(frozen=True)
class Part:
    """One job of a submission: tasks `first` to `first + count - 1` of all its tasks."""

    count: int
    offset: int = 0
    """What is added to an array index to have the number of the task in the whole submission."""


def is_plain(text: object) -> bool:
    """Whether it can stand in an #SBATCH line."""
    return _PLAIN.fullmatch(str(text)) is not None


def arguments(job: Path) -> list[str]:
    """What has to be said to sbatch beside the script, since no line of it can hold it."""
    return [] if is_plain(job) else [f"--chdir={job}"]


def renumber(text: str, part: Part) -> str:
    """The same script for another part of the submission."""
    text = re.sub(r"^(#SBATCH --array=1-)\d+", rf"\g<1>{part.count}", text, flags=re.MULTILINE)
    return re.sub(r"^offset=\d+$", f"offset={part.offset}", text, flags=re.MULTILINE)


def script(plan: Plan, part: Part | None = None) -> str:
    """The text that is sent to sbatch."""
    part = part or Part(plan.agents)
    sections = [
        _sbatch_lines(plan, part),
        _opening(plan, part),
        _modules(plan),
        # In this form each node's agent has its steward; here it is for what this script does.
        _places(plan, " bare" if plan.form == "nodes" else ""),
        _variables("Variables of the cluster and the project.", plan.variables),
        _lines("Before the program.", plan.before),
        _lines("The environment.", plan.wrapping.before),
        _gpu_lines(plan),
        [*_work_folder(plan), _folder_and_python(plan)],
        agent_on_each_node(plan, logs_by_slurm=_logs_by_slurm(plan))
        if plan.form == "nodes"
        else one_agent(plan),
        clean_up(plan),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def shell_script(plan: Plan, *, wraps: bool = True) -> str:
    """What `srun --pty` runs: a shell with the places, variables and environment of a job.

    Without `wraps`, what it is given starts beside the container, where there is one.
    """
    launcher = " ".join(quote(one) for one in plan.wrapping.launcher) if wraps else ""
    program = f'{launcher} "$@"'.strip()
    of_many_nodes = wraps and plan.asked.get("nodes", 1) > 1
    sections = [
        [
            f"#!{plan.profile.script.interpreter}",
            f"# Made by runyard {__version__}: a shell with the environment of a job.",
            f"job={quote(plan.places.job)}",
        ],
        _modules(plan),
        _places(plan, " alone"),
        _variables("Variables of the cluster and the project.", plan.variables),
        _lines("Before the program.", plan.before),
        _lines("The environment.", plan.wrapping.before),
        _work_folder(plan),
        [
            "# What is given, or a shell.",
            '[ $# -gt 0 ] || set -- "${SHELL:-/bin/bash}" -i',
            *(["(", *_WHOLE_JOB, program, ")"] if of_many_nodes else [program]),
            "code=$?",
        ],
        [
            *plan.profile.script.after,
            STEWARD_ENDS,
            'exit "$code"',
        ],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


# A shell is a step on the first node, and an srun that is typed in it takes over the step's counts.
_WHOLE_JOB = (
    "# srun and programs find all nodes of the job, not only the one of this shell.",
    "for name in $(env | sed -n 's/^\\(SLURM_STEP[A-Z_]*\\|SLURM_CPU_BIND[A-Z_]*\\)=.*/\\1/p'); do",
    "  unset $name",
    "done",
    "unset SLURM_NTASKS SLURM_NPROCS SLURM_TASKS_PER_NODE SLURM_NTASKS_PER_NODE SLURM_DISTRIBUTION",
    'nodes=$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%N)',
    'count=$(scontrol show hostnames "$nodes" | wc -l)',
    "export SLURM_JOB_NODELIST=$nodes SLURM_NODELIST=$nodes",
    "export SLURM_JOB_NUM_NODES=$count SLURM_NNODES=$count",
)


def _sbatch_lines(plan: Plan, part: Part) -> list[str]:
    shell = plan.profile.script
    login = " -l" if shell.login_shell and " " not in shell.interpreter else ""
    options = plan.header.lines()
    if plan.form == "array":
        throttle = f"%{plan.at_once}" if plan.at_once is not None else ""
        options.insert(1, f"--array=1-{part.count}{throttle}")
    log = plan.log_pattern if _logs_by_slurm(plan) else "/dev/null"
    options.append(f"--output={log}")
    if is_plain(plan.places.job):
        options.append(f"--chdir={plan.places.job}")
    return [f"#!{shell.interpreter}{login}", *(f"#SBATCH {_option(one)}" for one in options)]


def _option(text: str) -> str:
    """As sbatch reads a line of a script: quotes hold a value together."""
    name, equals, value = text.partition("=")
    return f'{name}="{value}"' if equals and re.search(r"[\s;&|<>()]", value) else text


def _logs_by_slurm(plan: Plan) -> bool:
    return is_plain(plan.logs) and is_plain(plan.log_prefix)


_IN_A_JOB = """\
if [ -z "${SLURM_JOB_ID:-}" ]; then
  echo "runyard: this is the script of a job; srun, which it may use, works in no other place" >&2
  echo "  try:  sbatch $0; or, for an allocation to run it in:  runyard shell, salloc" >&2
  exit 2
fi"""


def _opening(plan: Plan, part: Part) -> list[str]:
    kind = "one agent a task," if plan.form == "array" else "agents"
    lines = [
        f"# Made by runyard {__version__}: {kind} of one sweep. Which one is in job.json.",
        f"job={quote(plan.places.job)}",
        _IN_A_JOB,
        "umask o=  # Logs and results are not for every user of the cluster.",
    ]
    if not _logs_by_slurm(plan):
        task = "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
        number = plan.log_number(task, "${SLURM_JOB_ID}", "${SLURMD_NODENAME}")
        log = (
            f'{quote(plan.logs)}/{quote(plan.log_prefix) if plan.log_prefix else ""}"{number}.log"'
        )
        lines.append(f"exec >>{log} 2>&1  # Slurm cannot write to a folder of this name.")
    if plan.form == "array":
        lines += [
            f"offset={part.offset}",
            "export RUNYARD_TASK=$((SLURM_ARRAY_TASK_ID + offset))  # Among all jobs of it.",
        ]
    task = "${SLURM_ARRAY_TASK_ID:+ (task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_JOB_ID)}"
    lines.append(
        f'echo "runyard: $(date "+%Y-%m-%d %H:%M:%S"), job ${{SLURM_JOB_ID:-none}}{task}'
        f" on {'$SLURM_JOB_NODELIST' if plan.is_distributed else '$(hostname)'},"
        ' ${SLURM_JOB_PARTITION:-no partition}, user $(id -un)"'
    )
    return lines


def _modules(plan: Plan) -> list[str]:
    path = plan.profile.script.path
    lines = [f'export PATH={quote(":".join(path))}:"$PATH"'] if path else []
    return _lines("The cluster's software.", [*lines, *module_lines(plan.modules)])


def _gpu_lines(plan: Plan) -> list[str]:
    """What the program will find, for whoever reads the log of a job that was slow or alone."""
    if not plan.asked.get("gpus"):
        return []
    return [
        "# The GPUs as the program finds them. A driver in trouble may not answer.",
        "command -v nvidia-smi >/dev/null && timeout 30 nvidia-smi --format=csv,noheader \\",
        "  --query-gpu=index,name,memory.used,memory.total,utilization.gpu |",
        "  sed 's/^/runyard: GPU /'",
        'echo "runyard: CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES-not set},'
        ' modules ${LOADEDMODULES:-none}"',
    ]


def _places(plan: Plan, how: str) -> list[str]:
    places = plan.places
    lines = [
        "# Places.",
        f"export RUNYARD_HOME={quote(places.home)}",
        f"export project_name={quote(plan.project_name)} exp_name={quote(plan.exp_name)}",
        f"export source_dir={quote(places.source)}",
        f"export scratch_dir={quote(project_scratch(places, plan.project_name))}",
        *_python_path(plan),
        'mkdir -p "$scratch_dir/hpc_outputs" "$scratch_dir/$exp_name/checkpoints"',
    ]
    lines += _local_folder(plan, how)
    # Since 22.05 srun does not take it over from the batch job.
    lines.append(
        'if [ -n "${SLURM_CPUS_PER_TASK:-}" ]; then '
        'export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"; fi'
    )
    return lines


_OUR_BASE = "${TMPDIR:-/tmp}/runyard-$(id -u)"
# Job, cluster and node: one machine may be several nodes, also of several clusters (a test of Slurm
# beside the real one), which all count their jobs from 1.
_OUR_LOCAL = f"{_OUR_BASE}/${{SLURM_JOB_ID:-$$}}-${{SLURM_CLUSTER_NAME:-here}}-%N"
_THIS_NODES = """\
case "$RUNYARD_LOCAL" in
  *%N) export SLURM_TMPDIR="${RUNYARD_LOCAL%??}${SLURMD_NODENAME:-}" ;;
  ?*) export SLURM_TMPDIR="$RUNYARD_LOCAL" ;;
esac"""


def _local_folder(plan: Plan, how: str) -> list[str]:
    """The node's own disk: the site's folder, or one that we make; with the data in it."""
    local = expandable(plan.profile.storage.local)
    if plan.profile.storage.local_made_by_us:
        lines = [f'export RUNYARD_LOCAL="{local}"', f'export SLURM_TMPDIR="{local}"']
    else:
        given = "${SLURM_TMPDIR:-}" if local == "${SLURM_TMPDIR}" else f"${{SLURM_TMPDIR:-{local}}}"
        lines = [
            f'export SLURM_TMPDIR="{given}" RUNYARD_LOCAL=""',
            f'[ -n "$SLURM_TMPDIR" ] || RUNYARD_LOCAL="{_OUR_LOCAL}"',
            _THIS_NODES,
        ]
    is_always = plan.profile.storage.local_made_by_us or plan.job.get("staging")
    only = "" if is_always else '[ -z "$RUNYARD_LOCAL" ] || '
    return [
        *lines,
        f'steward=({start(plan, "data.steward")} "$job/job.json")',
        f'{only}"${{steward[@]}}" begin $${how} || exit 1  # Makes the folder, brings the data.',
    ]


def local_base(profile: Profile) -> str:
    """Where the folders of all jobs lie on a node's disk that we make, as a shell writes it."""
    if profile.storage.local_made_by_us:
        return expandable(profile.storage.local).rpartition("/")[0]
    return _OUR_BASE


def _python_path(plan: Plan) -> list[str]:
    if plan.places.python_path is None:
        return []
    return [f'export PYTHONPATH={quote(plan.places.python_path)}"${{PYTHONPATH:+:$PYTHONPATH}}"']


def project_scratch(places: Places, project: str) -> Path:
    """The project's own folder on scratch."""
    return (places.scratch or places.home / "scratch") / project


def _variables(title: str, variables: Mapping[str, str]) -> list[str]:
    lines = [f'export {name}="{expandable(value)}"' for name, value in variables.items()]
    return [f"# {title}", *lines] if lines else []


def _lines(title: str, lines: Iterable[str]) -> list[str]:
    found = list(lines)
    return [f"# {title}", *found] if found else []


def _work_folder(plan: Plan) -> list[str]:
    work = quote(plan.places.work)
    return [
        f"cd {work} || {{",
        f"  echo runyard: {quote(f'the folder {plan.places.work} is not on this node:')} "
        '"$(hostname)" >&2',
        "  exit 1",
        "}",
    ]


def _folder_and_python(plan: Plan) -> str:
    # The Python of a container's image is not to be seen from here.
    own = "$(command -v python || command -v python3 || echo none)"
    python = "of the container" if plan.wrapping.launcher else own
    return f'echo "runyard: in $PWD, Python {python}"'
