"""Lists that clients read page by page, and times as they read them."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

from runyard.server.wandb_api.graphql.inputs import Arguments
from runyard.server.wandb_api.graphql.request import Refusal, Source

_USUAL, _MOST = 50, 1_000


def page_size(arguments: Arguments, *, usual: int = _USUAL, most: int = _MOST) -> int:
    # A page of nothing would say that the list goes on, and not where.
    return max(1, arguments.count("first", usual, most))


def cursor_text(arguments: Arguments) -> str | None:
    """What stood in `edge` for the entry that the client has read up to."""
    after = arguments.text("after")
    if not after:
        return None
    try:
        return base64.b64decode(after, validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise Refusal(f"{after[:100]!r} is not a cursor of ours") from error


def cursor_number(arguments: Arguments) -> int | None:
    text = cursor_text(arguments)
    if text is None:
        return None
    if not text.isascii() or not text.lstrip("-").isdigit() or len(text) > 18:
        raise Refusal("after is not a cursor of this list")
    return int(text)


def edge(cursor: object, node: Source, **more: object) -> Source:
    return {"cursor": base64.b64encode(str(cursor).encode()).decode(), "node": node, **more}


Total: TypeAlias = int | Callable[[Arguments], Awaitable[int]] | None


def connection(edges: Iterable[Source], *, more: bool = False, total: Total = None) -> Source:
    """A list, or a page of one. An empty list is a list too.

    `total` is the length of the whole list, or counts it where that is asked for. A list that is
    all there needs none.
    """
    shown = list(edges)
    return {
        "edges": shown,
        "totalCount": len(shown) if total is None and not more else total,
        "pageInfo": {
            "__typename": "PageInfo",
            "hasNextPage": more,
            "endCursor": shown[-1]["cursor"] if shown else None,
        },
    }


def page(edges: Sequence[Source], size: int, total: Total = None) -> Source:
    """A page of `size` from edges of which there may be one more, to tell whether it goes on."""
    return connection(edges[:size], more=len(edges) > size, total=total)


def timestamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
