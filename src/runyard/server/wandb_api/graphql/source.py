"""What every field of the GraphQL API shares: where answers come from, and how one is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Source = Mapping[str, Any]


class Refusal(Exception):
    """The client asked for something that cannot be: answered in `errors`, never retried."""
