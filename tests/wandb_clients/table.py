"""The table of versions and flows, as the documentation shows it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.wandb_clients.matrix import Outcome, load_flows
from tests.wandb_clients.versions import VERSIONS


def draw(outcomes: Mapping[tuple[str, str], Outcome]) -> str:
    """✔ works, — not in that client, ✘ fails, with its reason below, ? not tried."""
    lines = [
        f"| flow | {' | '.join(VERSIONS)} |",
        f"| --- |{' :---: |' * len(VERSIONS)}",
    ]
    notes: list[str] = []
    for name, flow in load_flows().items():
        cells = []
        for version in VERSIONS:
            if not flow.is_in(version):
                cells.append("—")
                continue
            outcome = outcomes.get((version, name))
            if outcome is None:
                cells.append("?")
            elif (trouble := outcome.trouble) is None:
                cells.append("✔")
            else:
                if trouble not in notes:
                    notes.append(trouble)
                cells.append(f"✘[^{notes.index(trouble) + 1}]")
        lines.append(f"| {flow.title} | {' | '.join(cells)} |")
    if notes:
        # A line each, without marks of the page's own.
        notes = [note.replace("|", "/") for note in notes]
        lines += ["", *(f"[^{number}]: {note}" for number, note in enumerate(notes, 1))]
    return "\n".join(lines)


def read(drawn: str) -> dict[tuple[str, str], Outcome]:
    """The outcomes of a table that was drawn before; of versions and flows that there still are."""
    table, _, below = drawn.partition("\n\n")
    notes = dict(re.findall(r"^\[\^(\d+)\]: (.*)$", below, re.MULTILINE))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    names = {flow.title: name for name, flow in load_flows().items()}
    outcomes = {}
    for title, *cells in rows[2:]:
        for version, cell in zip(rows[0][1:], cells, strict=True):
            number = re.fullmatch(r"✘\[\^(\d+)\]", cell)
            if title in names and version in VERSIONS and (number or cell == "✔"):
                trouble = notes.get(number[1], "?") if number else None
                outcomes[version, names[title]] = Outcome(trouble)
    return outcomes
