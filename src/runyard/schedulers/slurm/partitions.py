"""What a cluster has, by partition: nodes, CPUs, GPUs, how many are free, who may use them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence

from runyard.reading.units import read_whole
from runyard.schedulers.partitions import Count, Partition
from runyard.schedulers.slurm.commands import Answer, ask, for_reading
from runyard.schedulers.slurm.facts import read_partition_rules
from runyard.schedulers.slurm.values import read_gres, read_span

_SECONDS = 20.0
# With a width each: sinfo has no other way to keep long values whole.
_COLUMNS = (
    ("Partition", 80), ("NodeList", 80), ("StateLong", 30), ("Gres", 400), ("GresUsed", 400),
    ("CPUsState", 40), ("Memory", 20),
)  # fmt: skip
# States of a node that takes no job; Slurm adds signs such as * (not answering) behind.
_DOWN = ("down", "drain", "fail", "maint", "power", "unknown")
# And of one that is promised to others, or is not there yet.
_AWAY = (*_DOWN, "reserved", "boot", "inval", "future", "planned", "blocked", "reboot")


def list_partitions(environ: Mapping[str, str] | None = None) -> list[Partition]:
    """Every partition that Slurm shows to this user."""
    env = for_reading(environ)
    columns = ",".join(f"{name}:{width}" for name, width in _COLUMNS)
    nodes = _ask(["sinfo", "--noheader", "--Node", f"--Format={columns}"], env)
    rules = _ask(["scontrol", "--oneliner", "show", "partition"], env)
    partitions = read_partitions(nodes.output, rules.output)
    if any(partition.denied for partition in partitions):
        mine = ask(
            ["sacctmgr", "--noheader", "--parsable2", "show", "association",
             f"user={os.environ.get('USER') or os.environ.get('LOGNAME') or ''}",
             "format=account,qos"],
            environ=env, patience=0.0, seconds=_SECONDS,
        )  # fmt: skip
        partitions = read_partitions(nodes.output, rules.output, accounts_of(mine))
    return partitions


def read_partitions(
    nodes: str, rules: str, accounts: Iterable[str] | None = None
) -> list[Partition]:
    """From what sinfo and scontrol printed; `accounts` are the user's, None where not known."""
    rules_of = read_partition_rules(rules)
    partitions: dict[str, Partition] = {}
    for line in nodes.splitlines():
        cells = _cells(line)
        if cells is None:
            continue
        name = cells["Partition"].rstrip("*")
        rule = rules_of.get(name, {})
        before = partitions.get(name) or Partition(
            name,
            is_default=cells["Partition"].endswith("*"),
            state=rule.get("State", "UP"),
            longest=read_span(rule.get("MaxTime")),
            usual=read_span(rule.get("DefaultTime")),
            most_nodes=_whole(rule.get("MaxNodes", "")),
            denied=_denied(rule, accounts),
        )
        partitions[name] = _with_node(before, cells)
    # sinfo goes by nodes and has no order of its own; the site's is that of its configuration.
    places = {name: place for place, name in enumerate(rules_of)}
    return sorted(
        partitions.values(),
        key=lambda each: (not each.is_default, places.get(each.name, len(places))),
    )


def nodes_of(partition: str | None, environ: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The nodes of a partition (the usual one, where none is named), and those that are away."""
    words = ["sinfo", "--noheader", "--Node", "--format=%N|%T|%P"]
    answer = ask([*words, *([f"--partition={partition}"] if partition else [])],
                 environ=for_reading(environ), patience=10)  # fmt: skip
    if not answer.is_good:
        raise answer.refused("the nodes cannot be listed", "`sinfo -s` shows the partitions")
    up: dict[str, None] = {}
    away: dict[str, None] = {}
    for line in answer.output.splitlines():
        # A site's greeting is no line of the table.
        if line.count("|") != 2:
            continue
        node, state, name = (cell.strip() for cell in line.split("|"))
        if not node or (partition is None and not name.endswith("*")):
            continue
        (away if state.rstrip("*~#$@^-").startswith(_DOWN) else up)[node] = None
    return list(up), list(away)


def accounts_of(answer: Answer) -> list[str] | None:
    """The accounts that sacctmgr lists; None where it cannot say."""
    if not answer.is_good:
        return None
    names = [line.partition("|")[0] for line in answer.output.splitlines()]
    return sorted({name for name in names if name}) or None


def _with_node(before: Partition, cells: Mapping[str, str]) -> Partition:
    state = cells["StateLong"].lower()
    is_away = any(word in state for word in _AWAY)
    is_idle = state.startswith("idle") and not is_away
    _, idle, _, total = (
        _whole(part) or 0 for part in (cells["CPUsState"] + "/0/0/0").split("/")[:4]
    )
    gpus = dict(before.gpus)
    used = read_gres(cells["GresUsed"])
    for kind, count in read_gres(cells["Gres"]).items():
        free = 0 if is_away else max(0, count - used.get(kind, 0))
        gpus[kind or "gpu"] = gpus.get(kind or "gpu", Count()) + Count(free, count)
    memory = _whole(cells["Memory"]) or 0
    low, high = before.memory
    return Partition(
        before.name,
        before.is_default,
        before.state,
        before.nodes + Count(int(is_idle), 1),
        before.cpus + Count(0 if is_away else idle, total),
        gpus,
        (min(low or memory, memory), max(high, memory)),
        before.longest,
        before.usual,
        before.most_nodes,
        before.denied,
    )


def _cells(line: str) -> dict[str, str] | None:
    if len(line) < sum(width for _, width in _COLUMNS[:-1]):
        return None
    cells, begin = {}, 0
    for name, width in _COLUMNS:
        cells[name] = line[begin : begin + width].strip()
        begin += width
    return cells if cells["Partition"] else None


def _denied(rule: Mapping[str, str], accounts: Iterable[str] | None) -> str | None:
    allowed = rule.get("AllowAccounts", "ALL")
    mine = None if accounts is None else set(accounts)
    if allowed not in ("ALL", "(null)"):
        named = set(allowed.split(","))
        if mine is None or not named & mine:
            return f"for accounts {_short(sorted(named))} only"
    barred = set(rule.get("DenyAccounts", "").split(",")) - {""}
    if barred and mine is not None and mine <= barred:
        return "not for your account"
    qos = rule.get("AllowQos", "ALL")
    if qos not in ("ALL", "(null)"):
        return f"with --qos {_short(qos.split(','))}"
    return None


def _short(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")


def _ask(words: Sequence[str], environ: Mapping[str, str]) -> Answer:
    answer = ask(words, environ=environ, patience=0.0, seconds=_SECONDS)
    if not answer.is_good:
        raise answer.refused("Slurm does not tell what partitions there are")
    return answer


def _whole(text: str) -> int | None:
    match = re.match(r"\d+", text.strip())
    return read_whole(match[0]) if match else None
