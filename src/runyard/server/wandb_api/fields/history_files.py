"""`Run.download_history_exports()`: which clients get a file for their question.

Clients ask for a run's files also when they scan its rows, with the same words, and would then read
the file: what a row lacks would be None, and a file that the client has kept would hide newer rows.
A scan asks for the last step right before, a download does not. So whoever has just asked for that
gets no file, and neither does an older client, which does not always ask for it.
"""

from __future__ import annotations

import re
import secrets

from runyard.server.history.exporting.exports import can_write
from runyard.server.people.signed_addresses import Kind
from runyard.server.wandb_api.graphql.request import Refusal, Request

LAST_STEP_QUERY = "RunHistoryKeys"

_FIRST_RELEASE = (0, 28)


def note_scan(request: Request, run: int) -> None:
    if request.operation == LAST_STEP_QUERY:
        request.tracker.exports.expect_scan(request.caller.key_id, request.host, run)


def wants_file(request: Request, run: int) -> bool:
    """Whether a question for a run's files is one of a download."""
    is_scan = request.tracker.exports.is_scan(request.caller.key_id, request.host, run)
    release = re.match(r"W&B Public Client (\d+)\.(\d+)", request.agent)
    is_new = release is not None and (int(release[1]), int(release[2])) >= _FIRST_RELEASE
    return is_new and not is_scan


def address_of_file(request: Request, run: int) -> str:
    if not can_write():
        raise Refusal(
            "parquetHistory: a file of a run's history needs pyarrow, which the server does not "
            "have: pip install 'runyard[export]' where it runs, and start it again"
        )
    return request.address(Kind.HISTORY_DOWN, run, secrets.token_hex(8))
