"""Every flow with every version of the client: what to try, and how it went."""

from __future__ import annotations

import getpass
import importlib
import re
import shutil
import signal
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from runyard.client.discover import ensure_server
from runyard.home import Discovery, Home, read_discovery
from tests.wandb_clients.client import COLOUR, Client, Ended
from tests.wandb_clients.environments import ensure_environment
from tests.wandb_clients.versions import VERSIONS, ordered

Check = Callable[[Client], None]


@dataclass(frozen=True)
class Flow:
    """Something that people do with the client."""

    name: str  # Also the project's that its runs are in.
    title: str
    check: Check
    since: str = "0.0.0"  # Older clients do not have it.
    waits: bool = False  # Nearly all of its time: many can go on at once.

    def is_in(self, version: str) -> bool:
        return ordered(version) >= ordered(self.since)


@dataclass(frozen=True)
class Outcome:
    """How a flow went with one version; without trouble, well."""

    trouble: str | None = None  # In a line.
    story: str | None = None  # In full.


FLOWS: dict[str, Flow] = {}


def flow(title: str, *, since: str = "0.0.0", waits: bool = False) -> Callable[[Check], Check]:
    """Declares a function that drives a client to be a flow."""

    def declare(check: Check) -> Check:
        name = check.__name__.replace("_", "-")
        FLOWS[name] = Flow(name, title, check, since, waits)
        return check

    return declare


def load_flows() -> dict[str, Flow]:
    """All flows, in the order of the documentation."""
    for module in ("tracking", "continuing", "reading", "sweeping"):
        importlib.import_module(f"tests.wandb_clients.{module}")
    return FLOWS


def pairs() -> list[tuple[str, str]]:
    """Version and flow, where the version has it: the slowest to come to an end first."""
    return [
        (version, name)
        for version in VERSIONS
        for name, flow in sorted(load_flows().items(), key=lambda item: item[0] != "stopping")
        if flow.is_in(version)
    ]


class Session:
    """One server, and the client versions that log to it."""

    def __init__(self, folder: Path) -> None:
        # A shell takes SIGINT from what it starts in the background, and children inherit that. It
        # is how the client itself ends a run that was stopped from the server.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._folder = folder
        self.home = Home(folder / "state")
        ensure_server(self.home).api.close()
        self._server = self._discover()

    def _discover(self) -> Discovery:
        discovery = read_discovery(self.home)
        assert discovery is not None
        return discovery

    def try_out(self, version: str, name: str) -> Outcome:
        """Run one flow. Raises MissingClient where the version cannot be had."""
        outcome = Outcome()
        for number in range(3):
            client = self.client(version, f"{name}-{version}-{number}")
            try:
                FLOWS[name].check(client)
                return Outcome()
            except Exception as error:
                outcome = Outcome(_in_a_line(error), traceback.format_exc())
                if not client.has_missed_itself():
                    break
            finally:
                client.api.close()
                shutil.rmtree(client.folder, ignore_errors=True)
        return outcome

    def client(self, version: str, project: str, **environment: str) -> Client:
        """A client of that version with a folder of its own, and more in its environment."""
        python = ensure_environment(version)
        # Short: the client puts sockets below it, whose paths may not be long.
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        return Client(
            version, python, self._server, getpass.getuser(), folder, project, environment
        )


def _in_a_line(error: Exception) -> str:
    """What went wrong, for a table: without colours, and without what differs from run to run."""
    lines = [line.strip() for line in COLOUR.sub("", str(error)).splitlines() if line.strip()]
    if isinstance(error, Ended):
        told = [line for line in lines[1:] if re.match(r"[\w.]*(Error|Exception)\b", line)]
        return f"{lines[0].split(': ')[0]}: {(told or lines)[-1]}"[:200]
    where = traceback.extract_tb(error.__traceback__)
    line = next((step.line for step in reversed(where) if "wandb_clients" in step.filename), "")
    return f"{type(error).__name__} at `{line}` {lines[0] if lines else ''}"[:200].strip()
