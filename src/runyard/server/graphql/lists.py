"""Lists as clients page through them, and times as they read them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from runyard.server.graphql.executor import Source
from runyard.server.graphql.inputs import as_count

_PAGE, _LARGEST_PAGE = 50, 1_000


def page_size(given: Mapping[str, Any], name: str = "first") -> int:
    return max(1, as_count(given, name, _PAGE, _LARGEST_PAGE))


def connection(items: Iterable[tuple[str, Source]], *, more: bool) -> Source:
    """Cursors with what they stand behind. An empty list is a list too."""
    edges = [{"cursor": cursor, "node": node} for cursor, node in items]
    return {
        "edges": edges,
        "pageInfo": {
            "__typename": "PageInfo",
            "endCursor": edges[-1]["cursor"] if edges else None,
            "hasNextPage": more,
        },
    }


def timestamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
