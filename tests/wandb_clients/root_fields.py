"""Which root fields of GraphQL a client's own text names, and what this server does with each.

.venv/bin/python -m tests.wandb_clients.root_fields     # writes the list into the documentation
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from runyard.server.http import scopes
from runyard.server.wandb_api.fields import refusals
from tests.wandb_clients.environments import ensure_environment
from tests.wandb_clients.page import put_section
from tests.wandb_clients.versions import VERSIONS

SECTION = "root fields"
# `mutation Name($id: ID!) { alias: field(...`, in Python's modules and in the Go program. The text
# of a format has two braces.
_OPERATION = re.compile(
    rb"\b(mutation|query)\s*(?:[A-Za-z_]\w*)?\s*"
    rb"(?:\((?:[^()]|\([^()]*\))*\))?\s*(?:@\w+[^{]*)?"
    rb"\{\{?\s*(?:[A-Za-z_]\w*\s*:\s*)?([A-Za-z_]\w*)"
)


def read_roots(version: str) -> Mapping[str, set[str]]:
    """The first field of every operation in a release's files, by the operation's kind."""
    (site,) = ensure_environment(version).parents[1].glob("lib/python*/site-packages")
    roots: dict[str, set[str]] = {"mutation": set(), "query": set()}
    for path in (*(site / "wandb").rglob("*.py"), *(site / "wandb" / "bin").iterdir()):
        for match in _OPERATION.finditer(path.read_bytes()):
            roots[match[1].decode()].add(match[2].decode())
    return roots


def draw(version: str, roots: Mapping[str, set[str]]) -> str:
    """The list, as the documentation shows it."""
    lines = [f"Client {version} names {len(roots['mutation'])} mutations and "
             f"{len(roots['query'])} queries."]  # fmt: skip
    tables = {"mutation": refusals.MUTATIONS, "query": refusals.QUERIES}
    for kind, word in (("mutation", "Mutations"), ("query", "Queries")):
        answered = sorted(roots[kind] - tables[kind].keys())
        lines += ["", f"{word} that are answered: {', '.join(f'`{name}`' for name in answered)}."]
        lines += ["", f"{word} that are refused by name:", ""]
        lines += [
            f"- `{name}`: {reason}"
            for name, reason in sorted(tables[kind].items())
            if name in roots[kind]
        ]
    return "\n".join(lines)


def answered_mutations() -> frozenset[str]:
    return scopes.RUNS_MUTATIONS | scopes.WHOLE_MUTATIONS


if __name__ == "__main__":
    put_section(SECTION, draw(VERSIONS[0], read_roots(VERSIONS[0])))
