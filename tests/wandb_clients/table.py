"""The table of versions and flows, as the documentation shows it."""

from __future__ import annotations

from collections.abc import Mapping

from tests.wandb_clients.matrix import Outcome, load_flows
from tests.wandb_clients.versions import VERSIONS


def draw(outcomes: Mapping[tuple[str, str], Outcome]) -> str:
    """✔ works, — not in that client, ✘ fails, with its reason below."""
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
            trouble = outcomes[version, name].trouble
            if trouble is None:
                cells.append("✔")
            else:
                if trouble not in notes:
                    notes.append(trouble)
                cells.append(f"✘[^{notes.index(trouble) + 1}]")
        lines.append(f"| {flow.title} | {' | '.join(cells)} |")
    if notes:
        lines += ["", *(f"[^{number}]: {note}" for number, note in enumerate(notes, 1))]
    return "\n".join(lines)
