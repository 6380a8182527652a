"""Lists that clients read page by page."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from runyard.server.graphql.executor import Refusal, Source
from runyard.server.graphql.inputs import as_text

_USUAL, _LARGEST = 100, 10_000


def page_size(given: Mapping[str, Any]) -> int:
    first = given.get("first")
    if first is None:
        return _USUAL
    if not isinstance(first, int) or isinstance(first, bool) or first < 0:
        raise Refusal("first is not a number of entries")
    return min(first, _LARGEST)


def cursor_text(given: Mapping[str, Any]) -> str | None:
    after = as_text(given, "after")
    if not after:
        return None
    try:
        return base64.b64decode(after, validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise Refusal(f"{after[:100]!r} is no cursor of ours") from error


def cursor_number(given: Mapping[str, Any]) -> int | None:
    text = cursor_text(given)
    if text is None:
        return None
    if not text.isascii() or not text.lstrip("-").isdigit() or len(text) > 18:
        raise Refusal("after is no cursor of this list")
    return int(text)


def edge(cursor: object, node: Source, **more: object) -> Source:
    return {"cursor": base64.b64encode(str(cursor).encode()).decode(), "node": node, **more}


def connection(edges: Sequence[Source], size: int, total: int | None = None) -> Source:
    """A page of `size` from edges of which there may be one more, to tell whether it goes on."""
    shown = list(edges[:size])
    return {
        "edges": shown,
        "totalCount": total,
        "pageInfo": {
            "__typename": "PageInfo",
            "hasNextPage": len(edges) > size,
            "endCursor": shown[-1]["cursor"] if shown else None,
        },
    }
