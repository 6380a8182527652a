"""Regular expressions whose time grows with the text alone.

Whoever may read may also filter. Python's own engine can be kept busy for hours by eleven
characters, with every other thread waiting. RE2 cannot, and lets other threads work meanwhile. It
has no look-around and no references back; its `\\w`, `\\d`, `\\s` and `\\b` know ASCII only.
"""

from __future__ import annotations

import re2

_LONGEST = 2_000
# The time for a text grows with this too. A pattern that a person writes has below a hundred.
_MOST_INSTRUCTIONS = 4_000
_MEMORY = 1 << 20


class BadPattern(ValueError):
    """A pattern that cannot be read, or that asks for more than RE2 does."""


class Pattern:
    """A compiled pattern. `search` says whether it stands anywhere in a text."""

    def __init__(self, text: str, *, ignore_case: bool = False) -> None:
        if len(text) > _LONGEST:
            raise BadPattern(f"the pattern is longer than {_LONGEST} characters")
        options = re2.Options()
        options.max_mem = _MEMORY
        options.never_capture = True
        options.log_errors = False
        options.case_sensitive = not ignore_case
        try:
            self._regexp = re2.compile(text.encode(errors="surrogatepass"), options)
        except re2.error as error:
            (reason,) = error.args
            raise BadPattern(reason.decode(errors="replace")) from error
        if self._regexp.programsize > _MOST_INSTRUCTIONS:
            raise BadPattern("the pattern repeats too much")

    def search(self, text: str) -> bool:
        return self._regexp.search(text.encode(errors="replace")) is not None
