"""How long until the first chart of 100 runs is on the screen: ours beside four other trackers.

    python -m benchmarks.page_peers [--folder FOLDER] [--rounds 5]

Every tracker gets the same 100 curves of 1,000 points by its own writer, in an environment of its
own that pip makes here, and its own server shows them to the same Chromium. Measured is what a
person sees: the browser's frames are recorded, and the time is that of the first frame in which the
largest chart has most of the colour that it has in the end. Servers are up all the time and caches
warm; trackers take turns, so that a busy machine is as busy for each. FOLDER keeps environments and
data for the next time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from tests.page.chromium import require_chromium

from benchmarks.frames import Recording, ink_of
from runyard.client.api import Api
from runyard.client.discover import start_server, stop_server
from runyard.client.http import Connection
from runyard.home import Home, prepare, read_discovery

RUNS, STEPS, FASTER = 100, 1_000, 5.0
VIEW = {"width": 1440, "height": 900}
_STARTS, _FILLS, _PAINTS = 300.0, 3600.0, 600.0
_WRITERS = Path(__file__).parent / "peers"


class NotHere(Exception):
    """A tracker that cannot be measured on this machine, and why."""


@dataclass
class Place:
    """Where a tracker keeps its data, what its writer printed, and its server's address."""

    folder: Path
    python: Path
    port: int
    said: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass
class Tracker:
    """One tracker: its server's words, and how its page of all runs is come to."""

    name: str
    command: Callable[[Place], list[str]]
    open: Callable[[Page, Place], str]
    """Shows the chart of all runs by hand, once; the address under which it is seen again."""
    environment: Callable[[Place], Mapping[str, str]] = lambda _place: {}
    times: list[float] = field(default_factory=list)
    version: str = ""
    settles: float = 0.0
    """Seconds until its chart stood still when it was shown for the first time."""


def _go(path: Callable[[Place], str]) -> Callable[[Page, Place], str]:
    def show(page: Page, place: Place) -> str:
        url = place.url + path(place)
        page.goto(url, wait_until="commit")
        return url

    return show


def _open_aim(page: Page, place: Place) -> str:
    """Its address holds the query in a form of its own: it is typed once."""
    page.goto(f"{place.url}/metrics")
    with contextlib.suppress(Exception):
        page.get_by_text("Skip", exact=True).click(timeout=5_000)
    page.locator("button", has_text="Metrics").first.click()
    page.get_by_text("loss", exact=True).last.click()  # The first is the heading above it.
    page.keyboard.press("Escape")
    page.locator("button", has_text="Search").first.click()
    page.wait_for_url(lambda url: "select=" in url)
    return page.url


def _open_mlflow(page: Page, place: Place) -> str:
    """Its charts show the newest ten runs until they are told to show all, and remember that."""
    experiment = json.loads(place.said)["experiment"]
    page.goto(f"{place.url}/#/experiments/{experiment}/runs?compareRunsMode=CHART")
    page.get_by_text(f"run-{RUNS - 1}", exact=True).first.wait_for()
    page.get_by_role("button", name="Close", exact=True).click()  # Its assistant.
    page.get_by_test_id("experiment-view-runs-visibility-column-header").click()
    page.get_by_text("Show all runs", exact=True).click()
    return page.url


def _program(place: Place, name: str) -> str:
    return str(place.python.parent / name)


PEERS = (
    Tracker(
        "aim",
        lambda it: [_program(it, "aim"), "up", "--repo", str(it.folder), "--host", "127.0.0.1",
                    "--port", str(it.port)],
        _open_aim,
    ),
    Tracker(
        "mlflow",
        lambda it: [_program(it, "mlflow"), "server", "--backend-store-uri",
                    f"sqlite:///{it.folder}/mlflow.db", "--host", "127.0.0.1", "--port",
                    str(it.port), "--workers", "1"],
        _open_mlflow,
        # Nothing here needs its periodic jobs, and they would take time from everybody.
        lambda _place: {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
    ),
    Tracker(
        "tensorboard",
        lambda it: [_program(it, "tensorboard"), "--logdir", str(it.folder), "--port",
                    str(it.port)],
        _go(lambda _place: "/#timeseries"),
    ),
    Tracker(
        "trackio",
        lambda it: [_program(it, "trackio"), "show", "--project", "peers"],
        _go(lambda _place: "/?project=peers"),
        lambda it: {
            "TRACKIO_DIR": str(it.folder),
            "GRADIO_SERVER_PORT": str(it.port),
            "GRADIO_ANALYTICS_ENABLED": "False",
            "BROWSER": "true",
        },
    ),
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--peers", nargs="*", default=[peer.name for peer in PEERS], help="only these"
    )
    given = parser.parse_args()
    # Servers are ended by what is left on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with contextlib.ExitStack() as stack:
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        chosen = [peer for peer in PEERS if peer.name in given.peers]
        return compare(stack, folder.resolve(), chosen, given.rounds)


def compare(
    stack: contextlib.ExitStack, folder: Path, peers: Sequence[Tracker], rounds: int
) -> int:
    folder.mkdir(exist_ok=True)
    curves = folder / "curves.json"
    if not curves.exists():
        curves.write_text(json.dumps(make_curves()))
    ours = Tracker("runyard", lambda _place: [], lambda _page, _place: "")
    missing: dict[str, str] = {}
    chromium = stack.enter_context(sync_playwright()).chromium
    browser = chromium.launch(executable_path=require_chromium(), args=["--no-sandbox"])
    stack.callback(browser.close)
    shown: list[tuple[Tracker, BrowserContext, str]] = []
    url, code = stack.enter_context(our_server(curves))
    context = new_context(browser)
    ours.settles = warm(context, f"{url}#code={code}")
    shown.append((ours, context, url))
    for peer in peers:
        try:
            place = install(folder, peer)
            fill(place, peer, curves)
            stack.enter_context(served(place, peer))
            context = new_context(browser)
            page = context.new_page()
            address = peer.open(page, place)
            peer.settles = wait_for_ink(page)
            page.close()
            shown.append((peer, context, address))
            print(f"{peer.name} {peer.version} shows its chart", file=sys.stderr)
        except Exception as error:  # One that fails is said to, and the others are compared.
            missing[peer.name] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            print(f"{peer.name} is left out: {missing[peer.name]}", file=sys.stderr)
    for _ in range(rounds):
        for tracker, context, address in shown:
            tracker.times.append(first_paint(context, address, tracker.settles))
            print(f"{tracker.name} {tracker.times[-1]:.0f} ms", file=sys.stderr)
    return tell([tracker for tracker, _, _ in shown], missing)


def make_curves() -> list[list[float]]:
    random.seed(7)
    paces = [random.uniform(1, 6) for _ in range(RUNS)]
    return [
        [math.exp(-pace * step / STEPS) + random.gauss(0, 0.03) for step in range(STEPS)]
        for pace in paces
    ]


def install(folder: Path, peer: Tracker) -> Place:
    """An environment with the tracker; pip asks whatever it is configured to."""
    home = folder / f"env-{peer.name}"
    python = home / "bin/python"
    if not (home / "installed").exists():
        venv.create(home, with_pip=True)
        done = subprocess.run(
            [python, "-m", "pip", "install", "-q", peer.name],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise NotHere(f"pip cannot install it: {done.stderr.strip().splitlines()[-1]}")
        (home / "installed").touch()
    asked = f"import importlib.metadata as m; print(m.version({peer.name!r}))"
    peer.version = subprocess.run(
        [python, "-c", asked], capture_output=True, text=True, check=True
    ).stdout.strip()
    data = folder / f"data-{peer.name}"
    data.mkdir(exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return Place(data, python, free.getsockname()[1])


def fill(place: Place, peer: Tracker, curves: Path) -> None:
    said = place.folder.with_suffix(".said")
    if not said.exists():
        done = subprocess.run(
            [place.python, _WRITERS / f"{peer.name}_writer.py", curves, place.folder],
            capture_output=True,
            text=True,
            timeout=_FILLS,
            env={**os.environ, **peer.environment(place)},
            check=False,
        )
        if done.returncode != 0:
            raise NotHere(f"its writer failed: {done.stderr.strip().splitlines()[-1]}")
        said.write_text(done.stdout)
    place.said = said.read_text()


@contextlib.contextmanager
def served(place: Place, peer: Tracker) -> Iterator[None]:
    log = (place.folder.with_suffix(".log")).open("w")
    process = subprocess.Popen(
        peer.command(place),
        cwd=place.folder,
        env={**os.environ, **peer.environment(place)},
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + _STARTS
        while not _answers(place.url):
            if process.poll() is not None or time.monotonic() > end:
                words = Path(log.name).read_text().strip().splitlines() or ["nothing"]
                raise NotHere(f"its server does not start; it said {words[-1][:150]}")
            time.sleep(0.5)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        log.close()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=20):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


@contextlib.contextmanager
def our_server(curves: Path) -> Iterator[tuple[str, str]]:
    """The project's page and a code; the curves come as the stock client sends them."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "state")
        prepare(home)
        start_server(home)
        try:
            discovery = read_discovery(home)
            assert discovery is not None
            connection = Connection(discovery.url, discovery.key)
            for number, values in enumerate(json.loads(curves.read_text())):
                new = {"id": f"run-{number}", "project": "peers", "command": ["x"]}
                run: Any = connection.post("/api/runs", {**new, "folder": "/x", "host": "here"})
                lines = [
                    json.dumps({"_step": step, "loss": value}) for step, value in enumerate(values)
                ]
                connection.post(
                    f"/files/{run['entity']}/peers/{run['id']}/file_stream",
                    {
                        "files": {"wandb-history.jsonl": {"offset": 0, "content": lines}},
                        "complete": True,
                        "exitcode": 0,
                    },
                )
            code = Api(connection).login_code()["code"]
            yield f"{discovery.url}/{run['entity']}/peers", code
        finally:
            stop_server(home)


def new_context(browser: Browser) -> BrowserContext:
    context = browser.new_context(viewport=VIEW)  # type: ignore[arg-type]
    context.set_default_timeout(_PAINTS * 1000)
    return context


def warm(context: BrowserContext, address: str) -> float:
    page = context.new_page()
    page.goto(address, wait_until="commit")
    took = wait_for_ink(page)
    page.close()
    return took


def wait_for_ink(page: Page) -> float:
    """Until the chart is there and stays as it is; how many seconds that took."""
    began = time.monotonic()
    end = began + _PAINTS
    seen: list[int] = []
    while time.monotonic() < end:
        page.wait_for_timeout(1500)
        seen.append(ink_of(page))
        if len(seen) > 2 and seen[-1] > 500 and seen[-1] == seen[-2] == seen[-3]:
            return time.monotonic() - began
    raise NotHere(f"no chart appeared in {_PAINTS:.0f} s")


def first_paint(context: BrowserContext, address: str, settles: float) -> float:
    """Milliseconds from the navigation to the first frame with the chart.

    For as long as it took the first time nobody looks at the page: looking costs it time.
    """
    page = context.new_page()
    try:
        with Recording(page) as recording:
            page.goto(address, wait_until="commit")
            began = float(page.evaluate("performance.timeOrigin"))
            page.wait_for_timeout(settles * 1000)
            wait_for_ink(page)
            # The recording is looked through afterwards, by a page of its own.
        return recording.first_full(context) - began
    finally:
        page.close()


def tell(trackers: list[Tracker], missing: Mapping[str, str]) -> int:
    """Ratios are taken within a round: from one to the next the machine may be busier."""
    ours = trackers[0].times
    print(f"\nfirst chart of {RUNS} runs x {STEPS:,} points, navigation to paint")
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print(f"{'tracker':14}{'version':>10}{'median ms':>12}{'times ours':>12}{'at least':>10}")
    least = []
    for tracker in trackers:
        ratios = [theirs / time for theirs, time in zip(tracker.times, ours, strict=True)]
        print(
            f"{tracker.name:14}{tracker.version:>10}{statistics.median(tracker.times):12.0f}"
            f"{statistics.median(ratios):12.1f}{min(ratios):10.1f}"
        )
        if tracker is not trackers[0]:
            least.append(statistics.median(ratios))
    for name, why in missing.items():
        print(f"{name:14} not measured: {why}")
    if not least:
        return 1
    print(f"\nthe best of the others takes {min(least):.1f} times ours (at least {FASTER:g})")
    return 0 if min(least) >= FASTER else 1


if __name__ == "__main__":
    sys.exit(main())
