"""The job's script: text that a person can read, valid in bash and in zsh. Pure.

Every value is quoted. Nothing secret is in it: the agent finds server and key in the state folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.clusters.profile import Storage
from runyard.launch.script_agents import (
    STEWARD_ENDS,
    agent_on_each_node,
    clean_up,
    one_agent,
    start,
)
from runyard.launch.shell_words import FOLDER_IS_TAKEN, expandable, module_lines, quote
from runyard.schedulers.header_request import ScriptPlace
from runyard.version import __version__

if TYPE_CHECKING:
    from runyard.clusters.profile import Profile
    from runyard.launch.plan import Places, Plan
from runyard.schedulers.protocol import Scheduler


@dataclass(frozen=True)
class Part:
    """One job of a submission: tasks `first` to `first + count - 1` of all its tasks."""

    count: int
    offset: int = 0
    """What is added to an array index to have the number of the task in the whole submission."""


def renumber(text: str, part: Part, scheduler: Scheduler) -> str:
    """The same script for another part of the submission."""
    text = scheduler.renumber(text, part.count)
    return re.sub(r"^offset=\d+$", f"offset={part.offset}", text, flags=re.MULTILINE)


def script(plan: Plan, part: Part | None = None) -> str:
    """The text that is sent to the scheduler."""
    part = part or Part(plan.agents)
    sections = [
        _header(plan, part),
        _opening(plan, part),
        _modules(plan),
        # In this form each node's agent has its steward; here it is for what this script does.
        _places(plan, " bare" if plan.form == "nodes" else ""),
        _variables("Variables of the cluster and the project.", plan.variables),
        _lines("Before the program.", plan.before),
        _lines("The environment.", plan.wrapping.before),
        _gpu_lines(plan),
        [*_work_folder(plan), _folder_and_python(plan)],
        agent_on_each_node(plan, has_log=_has_log(plan))
        if plan.form == "nodes"
        else one_agent(plan),
        clean_up(plan),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def shell_script(plan: Plan, *, wraps: bool = True) -> str:
    """What a person enters: a shell with the places, variables and environment of a job.

    Without `wraps`, what it is given starts beside the container, where there is one.
    """
    launcher = " ".join(quote(word) for word in plan.wrapping.launcher) if wraps else ""
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
            *(["(", *plan.words.whole_job, program, ")"] if of_many_nodes else [program]),
            "code=$?",
        ],
        [
            *plan.profile.script.after,
            STEWARD_ENDS,
            'exit "$code"',
        ],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def header_section(lines: Iterable[str], profile: Profile) -> list[str]:
    """The script's first lines: its shell, and the scheduler's header."""
    shell = profile.script
    login = " -l" if shell.login_shell and " " not in shell.interpreter else ""
    return [f"#!{shell.interpreter}{login}", *lines]


def _header(plan: Plan, part: Part) -> list[str]:
    log = plan.log_pattern if _has_log(plan) else None
    tasks = part.count if plan.form == "array" else None
    place = ScriptPlace(log, plan.places.job, tasks, plan.at_once)
    return header_section(plan.scheduler.header_lines(plan.header, place), plan.profile)


def _has_log(plan: Plan) -> bool:
    """Whether the scheduler can write the job's log."""
    return plan.words.is_plain(plan.logs) and plan.words.is_plain(plan.log_prefix)


def _opening(plan: Plan, part: Part) -> list[str]:
    words = plan.words
    kind = "one agent a task," if plan.form == "array" else "agents"
    lines = [
        f"# Made by runyard {__version__}: {kind} of one sweep. Which one is in job.json.",
        f"job={quote(plan.places.job)}",
        plan.words.outside,
        *plan.words.opening,
        "umask o=  # Logs and results are not for every user of the cluster.",
    ]
    if not _has_log(plan):
        task = f"${{{words.array_job}}}_${{{words.array_task}}}"
        number = plan.log_number(task, f"${{{words.job}}}", f"${{{words.node}}}")
        log = (
            f'{quote(plan.logs)}/{quote(plan.log_prefix) if plan.log_prefix else ""}"{number}.log"'
        )
        title = plan.scheduler.title
        lines.append(f"exec >>{log} 2>&1  # {title} cannot write to a folder of this name.")
    if plan.form == "array":
        lines += [
            f"offset={part.offset}",
            f"export RUNYARD_TASK=$(({words.array_task} + offset))  # Among all jobs of it.",
        ]
    number = words.array_task
    task = f"${{{number}:+ (task ${number} of ${words.array_job})}}"
    lines.append(
        f'echo "runyard: $(date "+%Y-%m-%d %H:%M:%S"), job ${{{words.job}:-none}}{task}'
        f" on {f'${words.nodes}' if plan.is_distributed else '$(hostname)'},"
        f' ${{{words.partition}:-no partition}}, user $(id -un)"'
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
    return [*lines, *_local_folder(plan, how), *plan.words.for_steps]


_OUR_BASE = "${TMPDIR:-/tmp}/runyard-$(id -u)"


def _local_folder(plan: Plan, how: str) -> list[str]:
    """The node's own disk: the site's folder, or one that we make; with the data in it."""
    local, words = expandable(plan.profile.storage.local), plan.words
    disk = words.disk
    # Job, cluster and node: one machine may be several nodes, also of several clusters (a test
    # beside the real one), which all count their jobs from 1.
    ours = f"{_OUR_BASE}/${{{words.own}:-$$}}-${{{words.cluster}:-here}}-%N"
    if plan.profile.storage.local_made_by_us:
        lines = [f'export RUNYARD_LOCAL="{local}"', f'export {disk}="{local}"']
    else:
        usual = "" if local in (f"${{{disk}}}", Storage().local) else local
        lines = [
            f'export {disk}="${{{disk}:-{usual}}}" RUNYARD_LOCAL=""',
            f'[ -n "${disk}" ] || RUNYARD_LOCAL="{ours}"',
            'case "$RUNYARD_LOCAL" in',
            f'  *%N) export {disk}="${{RUNYARD_LOCAL%??}}${{{words.node}:-}}" ;;',
            f'  ?*) export {disk}="$RUNYARD_LOCAL" ;;',
            "esac",
        ]
    is_always = plan.profile.storage.local_made_by_us or plan.job.get("staging")
    only = "" if is_always else '[ -z "$RUNYARD_LOCAL" ] || '
    return [
        *lines,
        f'steward=({start(plan, "data.steward")} "$job/job.json")',
        f'{only}"${{steward[@]}}" begin $${how} || exit 1  # Makes the folder, brings the data.',
        f"if {FOLDER_IS_TAKEN}; then",
        f'  export {disk}="$("${{steward[@]}}" where)"  # Somebody else has taken the usual name.',
        "fi",
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
    all_lines = list(lines)
    return [f"# {title}", *all_lines] if all_lines else []


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
