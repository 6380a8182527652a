"""The server's log: one record is one line, whatever stood in what a client sent."""

from __future__ import annotations

import logging
from typing import Any

from runyard.printable import printable


class LineFormatter(logging.Formatter):
    """Control characters of a message are shown, its line breaks too: nobody forges a line."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        return printable(super().formatMessage(record)).replace("\n", "\\n")

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's own name
        return printable(super().formatException(ei))
