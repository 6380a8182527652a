"""The part of a job's script in which agents work: started, waited for, cleaned up after. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runyard.launch.shell_words import FOLDER_IS_TAKEN, quote

if TYPE_CHECKING:
    from runyard.launch.plan import Plan

STEWARD_ENDS = '"${steward[@]}" end  # Saves results, removes the folder.'


def one_agent(plan: Plan) -> list[str]:
    stays = " stays" if _may_stay(plan) else ""
    return [
        "# The agent takes trials until none is left or the time is up. A signal to the job is",
        "# passed on to it, so that programs can save; the job ends as it does.",
        f"agent=({_agent_words(plan)})",
        f'ended="${plan.words.disk}/.runyard-ended.${{{plan.words.own}:-$$}}"',
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
        *_unless_it_says(plan),
        f'[ ! -r "$ended" ] || read -r code left{stays} <"$ended"',
        'rm -f "$ended"',
    ]


def _unless_it_says(plan: Plan) -> list[str]:
    """What counts for an agent that could not say anything any more."""
    if not _goes_back(plan):
        return ['left=""']
    return [
        "# One that was killed has left its work to the next link, unless the job was to end.",
        'left=left; [ "$early" != TERM ] || left=""',
    ]


_ON_NODE = """\
on_node='
  trap "" USR2 TERM
  case "$RUNYARD_LOCAL" in
    *%N) DISK="${RUNYARD_LOCAL%??}$NODE" ;;
    ?*) DISK="$RUNYARD_LOCAL" ;;
  esac
  python="$1" start="$5" json="$6"; shift 6
  "$python" -I -S -c "$start" "$json" begin $$ alone || exit 1
  if TAKEN; then DISK=$("$python" -I -S -c "$start" "$json" where); fi
  "$@" --output 3 3>&1
  code=$?
  "$python" -I -S -c "$start" "$json" end
  exit "$code"'
"""


def agent_on_each_node(plan: Plan, *, has_log: bool) -> list[str]:
    words = plan.words
    path = quote(f"{plan.logs}/{plan.log_prefix}%j-")
    log = words.node_log.replace("{path}", path) if has_log else ""
    on_node = _ON_NODE.replace("TAKEN", FOLDER_IS_TAKEN)
    on_node = on_node.replace("DISK", words.disk).replace("NODE", words.node)
    begin, end = _relay(plan)
    return [
        *begin,
        "# One agent a node. They end when no trial is left or the time is up; one that dies is",
        "# told of, and the others go on. The job ends as they did.",
        f"agent=({_agent_words(plan)})",
        f"{on_node}{words.each_node.replace('{log}', log)}",
        *end,
    ]


def _relay(plan: Plan) -> tuple[list[str], list[str]]:
    """Where only this node has a way to the server, the others go through it."""
    if not plan.job.get("relay"):
        return [], []
    begin = [
        "# This node leads the others to the server.",
        f'export RUNYARD_RELAY="$job/relay-${plan.words.own}"',
        f'{start(plan, "link.relay")} "$RUNYARD_RELAY" &',
        "relay=$!",
    ]
    return begin, ['kill "$relay" 2>/dev/null']


def _agent_words(plan: Plan) -> str:
    return f'{start(plan, "agent.__main__")} --job "$job/job.json"'


def start(plan: Plan, module: str) -> str:
    return " ".join(quote(word) for word in plan.runyard.words(module))


def _top_up(plan: Plan) -> list[str]:
    if not plan.profile.submission.from_compute_nodes:
        return []
    held = quote(held_file(plan.places.home, plan.places.job))
    words = f"{quote(plan.runyard.python)} -m runyard agents send-held"
    title = plan.scheduler.title
    return [f"[ ! -e {held} ] || {words}  # Agents that {title} did not take at first."]


def held_file(home: Path, job: Path) -> Path:
    """Where it is written which agents of a submission the scheduler has not taken yet."""
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
        *_stay(plan),
        *_again(plan),
        'exit "$code"',
    ]


def _may_stay(plan: Plan) -> bool:
    """Whether the agent knows that its job is pushed out, and says so in its last words."""
    return bool(plan.job.get("pushed_out")) and plan.form != "nodes"


def _stay(plan: Plan) -> list[str]:
    """Where jobs are pushed out, and the scheduler sends those back that have not ended."""
    if _may_stay(plan):
        return ['if [ "$left" = stays ]; then', *_wait_to_be_ended(plan, '"$stays"'), "fi"]
    if not plan.job.get("pushed_out") or not plan.words.pushed_out:
        return []
    return [
        "# Agents on nodes get TERM when their grace time begins, and this script does not.",
        f'case "$({plan.words.pushed_out})" in *[0-9]*)',
        # The scheduler ends it long before.
        *_wait_to_be_ended(plan, "86400"),
        "esac",
    ]


def _wait_to_be_ended(plan: Plan, seconds: str) -> list[str]:
    title = plan.scheduler.title
    return [
        f'  echo "runyard: all is saved; waits for {title} to put the job back into the queue"',
        f"  sleep {seconds} &",
        '  wait "$!"  # A signal ends it.',
    ]


def _again(plan: Plan) -> list[str]:
    """A chain that is one job: back to the queue, if the agent left work behind."""
    if plan.chain is None or not _goes_back(plan):
        return []
    last, words = plan.chain.links - 1, plan.words
    return [
        f'if [ "$left" = left ] && [ "${{{words.restarts}:-0}}" -lt {last} ]; then',
        f"  {words.requeue}  # The next link.",
        "fi",
    ]


def _goes_back(plan: Plan) -> bool:
    return plan.chain is not None and plan.chain.form == "requeue"
