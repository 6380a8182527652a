"""What every field of the GraphQL API shares: where answers come from, and how one is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Source = Mapping[str, Any]


class Refusal(Exception):
    """The client asked for something that cannot be: answered in `errors`, never retried."""


async def execute(
    text: str,
    variables: Mapping[str, Any] | None,
    roots: Mapping[str, Callable[[], Source]],
    operation_name: str | None = None,
) -> dict[str, Any]:
    """Run the operation in `text` against what `roots` makes for a query or a mutation."""
    # Loaded with the first document: graphql-core takes a fifth of the server's whole start.
    from runyard.server.wandb_api.graphql import documents

    return await documents.execute(text, variables, roots, operation_name)
