"""What the stock wandb client needs in its environment to log to our server."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Post every 2 s instead of 15: what a hard death loses is then small (clients from 0.19 on).
_TRANSMIT_SECONDS = "2"

# The client's process of whoever started us: through it a run would log with that one's server,
# key and folder. Who starts a program leaves it out.
FOREIGN_SERVICE = "WANDB_SERVICE"


def wandb_variables(
    url: str, key: str, environ: Mapping[str, str], *, is_ours: bool = True
) -> dict[str, str]:
    """Variables to set on top of `environ`; what the user set for tuning stays."""
    import urllib.parse  # Only now: the agent loads this module before there is anything to run.

    host = urllib.parse.urlsplit(url).hostname or "127.0.0.1"
    wanted = {
        "WANDB_BASE_URL": url,
        "WANDB_API_KEY": key,
        # Crash reports and telemetry would go to the outside, or probe for it.
        "WANDB_ERROR_REPORTING": environ.get("WANDB_ERROR_REPORTING", "false"),
        "WANDB_X_FILE_STREAM_TRANSMIT_INTERVAL": environ.get(
            "WANDB_X_FILE_STREAM_TRANSMIT_INTERVAL", _TRANSMIT_SECONDS
        ),
    }
    if not is_ours:
        return wanted
    # Clusters set a proxy for the outside, and the client would ask it for us. Of the two
    # spellings Go reads the first and Python the second: both say all that either said.
    lists = [environ.get(name, "").split(",") for name in ("NO_PROXY", "no_proxy")]
    spared = dict.fromkeys(item.strip() for items in (*lists, [host]) for item in items)
    wanted["NO_PROXY"] = wanted["no_proxy"] = ",".join(filter(None, spared))
    return wanted
