"""The part of a job's script in which agents work: started, waited for, cleaned up after. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runyard.launch.shell_words import quote

if TYPE_CHECKING:
    from runyard.launch.plan import Plan

STEWARD_ENDS = '"${steward[@]}" end  # Saves results, removes the folder.'


def one_agent(plan: Plan) -> list[str]:
    return [
        "# The agent takes trials until none is left or the time is up. A signal to the job is",
        "# passed on to it, so that programs can save; the job ends as it does.",
        f"agent=({_agent_words(plan)})",
        'ended="$SLURM_TMPDIR/.runyard-ended.${SLURM_JOB_ID:-$$}"',
        'pass_on() { [ -z "$process" ] || kill -s "$1" "$process" 2>/dev/null; }',
        'process="" early=""',
        "trap 'early=USR2; pass_on USR2' USR2",
        "trap 'early=TERM; pass_on TERM' TERM",
        '"${agent[@]}" --ended "$ended" --output 3 3>&1 &',
        "process=$!",
        '[ -z "$early" ] || pass_on "$early"',
        'wait "$process"; code=$?',
        "# A signal interrupts the waiting, and the code is then not the agent's.",
        'while kill -0 "$process" 2>/dev/null; do wait "$process"; code=$?; done',
        'left=""',
        '[ ! -r "$ended" ] || read -r code left <"$ended"',
        'rm -f "$ended"',
    ]


_ON_NODE = """\
on_node='
  trap "" USR2 TERM
  case "$RUNYARD_LOCAL" in
    *%N) SLURM_TMPDIR="${RUNYARD_LOCAL%??}$SLURMD_NODENAME" ;;
  esac
  python="$1" start="$5" json="$6"; shift 6
  "$python" -I -S -c "$start" "$json" begin $$ alone || exit 1
  "$@" --output 3 3>&1
  code=$?
  "$python" -I -S -c "$start" "$json" end
  exit "$code"'
"""
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


def agent_on_each_node(plan: Plan, *, logs_by_slurm: bool) -> list[str]:
    log = ""
    if logs_by_slurm:
        # Not %N: one host may be several nodes.
        path = quote(f"{plan.logs}/{plan.log_prefix}%j-")
        log = f' \\\n      --output={path}"$node.log" --open-mode=append'
    begin, end = _relay(plan)
    return [
        *begin,
        "# One agent a node. They end when no trial is left or the time is up; one that dies is",
        "# told of, and the others go on. The job ends as they did.",
        f"agent=({_agent_words(plan)})",
        f"{_ON_NODE}{_EACH_NODE.replace('{log}', log)}",
        *end,
    ]


def _relay(plan: Plan) -> tuple[list[str], list[str]]:
    """Where only this node has a way to the server, the others go through it."""
    if not plan.job.get("relay"):
        return [], []
    begin = [
        "# This node leads the others to the server.",
        'export RUNYARD_RELAY="$job/relay-$SLURM_JOB_ID"',
        f'{start(plan, "link.relay")} "$RUNYARD_RELAY" &',
        "relay=$!",
    ]
    return begin, ['kill "$relay" 2>/dev/null']


def _agent_words(plan: Plan) -> str:
    return f'{start(plan, "agent.__main__")} --job "$job/job.json"'


def start(plan: Plan, module: str) -> str:
    return " ".join(quote(one) for one in plan.runyard.words(module))


def _top_up(plan: Plan) -> list[str]:
    if not plan.profile.submission.from_compute_nodes:
        return []
    held = quote(held_file(plan.places.home, plan.places.job))
    words = f"{quote(plan.runyard.python)} -m runyard agents send-held"
    return [f"[ ! -e {held} ] || {words}  # Agents that Slurm did not take at first."]


def held_file(home: Path, job: Path) -> Path:
    """Where it is written which agents of a submission Slurm has not taken yet."""
    return home / "held" / f"{job.name}.json"


def _bring_back(plan: Plan) -> list[str]:
    manifest = plan.places.manifest
    return [] if manifest is None else [f"{start(plan, 'data.bring_back')} {quote(manifest)}"]


def clean_up(plan: Plan) -> list[str]:
    return [
        "# Whatever became of it.",
        *plan.profile.script.after,
        *_bring_back(plan),
        *_top_up(plan),
        STEWARD_ENDS,
        'echo "runyard: $(date "+%Y-%m-%d %H:%M:%S"), ended with code $code"',
        *_again(plan),
        'exit "$code"',
    ]


def _again(plan: Plan) -> list[str]:
    """A chain that is one job: back to the queue, if the agent left work behind."""
    if plan.chain is None or plan.chain.form != "requeue":
        return []
    last = plan.chain.links - 1
    return [
        f'if [ "$left" = left ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt {last} ]; then',
        '  scontrol requeue "$SLURM_JOB_ID"  # The next link.',
        "fi",
    ]
