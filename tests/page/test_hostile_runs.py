"""What a run brings never runs in the page's origin: opened as people do, and by its address."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, Request, expect

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.client.http import Connection
from runyard.home import Home, read_discovery
from tests.live.programs import stock_client, write_program
from tests.page.conftest import DRAWING, OpenPage, login_link

pytestmark = pytest.mark.live

# Marks what it gets hold of: the page's storage, its cookie, and the server by the page's login.
ATTACK = """(() => {
  try { localStorage.setItem('stolen', 'storage'); } catch {}
  try { top.stolen = document.cookie || 'cookie'; } catch {}
  try { new Image().src = '/api/stolen?' + encodeURIComponent(document.cookie); } catch {}
  try { fetch('/api/teams', {method: 'POST', credentials: 'include', body: '{"name": "stolen"}',
    headers: {'X-Runyard': 'page', 'Content-Type': 'application/json'}}); } catch {}
})()"""
HTML = f"""<p id=logged>a table</p><style>p {{ color: red }}</style><script>{ATTACK}</script>
<img src=/nothing onerror="{ATTACK.replace('"', "&quot;")}"><svg onload="top.stolen = 1"></svg>
<a id=link href="javascript:top.stolen = 1" target=_top>click</a>
<meta http-equiv=refresh content="0; url=/files/whatever">"""
SVG = f"""<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40" onload="top.stolen = 1">
<rect width="40" height="40" fill="green"/><script>{ATTACK.replace("&", "&amp;")}</script></svg>"""
MARKDOWN = """# Notes

<script>top.stolen = 1</script> <img src=x onerror="top.stolen = 1">

[one](javascript:top.stolen=1) [two](JaVaScRiPt:top.stolen=1) [three](data:text/html,x)
[four](vbscript:x) [fine](https://example.org/)

| <svg onload=top.stolen=1> | b |
| --- | --- |
| `<script>top.stolen=1</script>` | c |
"""
# A figure of Plotly and a chart of Vega-Lite that try to run, to load and to send.
FIGURE = {
    "data": [{"x": [1, 2], "y": [1, 2], "text": [f"<script>{ATTACK}</script>"] * 2}],
    "layout": {
        "title": {"text": '<a href="javascript:top.stolen=1">hostile figure</a>'},
        "images": [{"source": "/api/stolen?figure", "x": 0, "y": 1, "sizex": 1, "sizey": 1}],
        "annotations": [{"text": "<img src=x onerror=top.stolen=1>", "x": 1, "y": 1}],
    },
}
TITLE = {"text": {"expr": "toString.constructor('top.stolen = 1')()"}, "href": "javascript:stolen"}
LOGS = """
import json, os, pathlib, wandb
folder = pathlib.Path.cwd()
files = {"page.html": os.environ["HTML"], "drawing.svg": os.environ["SVG"],
         "x.js": os.environ["JS"], "x.mjs": os.environ["JS"], "notes.md": os.environ["MARKDOWN"],
         "paper.pdf": "%PDF-1.4 " + os.environ["HTML"], "style.css": "p {color: red}",
         "page.xhtml": os.environ["HTML"], "noname": os.environ["HTML"]}
for name, text in files.items():
    (folder / name).write_text(text)
bad = "<img src=x onerror=top.stolen=1>"
run = wandb.init(id="hostile", name=bad, project="birds", notes=os.environ["MARKDOWN"],
                 tags=[bad[:60]], group=bad, config={bad: bad})
run.log({"shown": wandb.Html(os.environ["HTML"], inject=False), bad: 1.0})
figure = folder / "figure.plotly.json"
figure.write_text(os.environ["FIGURE"])
files[figure.name] = ""
run.log({"figure": {"_type": "plotly-file", "path": figure.name}})
table = wandb.Table(columns=["label", "value"], data=[[bad, 1], ["javascript:top.stolen=1", 2]])
chart = wandb.plot.bar(table, "label", "value")
chart.spec.string_fields["title"] = json.loads(os.environ["TITLE"])
run.log({"chart": chart})
plain = wandb.plot.bar(wandb.Table(columns=["label", "value"], data=[[bad, 1]]), "label", "value")
run.log({"plain": plain})
run.log({"picture": {"_type": "image-file", "path": "drawing.svg", "format": "svg"}})
for name in files:
    run.save(str(folder / name), base_path=str(folder), policy="now")
print(bad)
run.finish()
"""
FILES = (
    "page.html", "drawing.svg", "x.js", "x.mjs", "notes.md", "paper.pdf", "style.css", "page.xhtml",
    "noname",
)  # fmt: skip
# As if a page of ours had been made to load a run's file: every way there is.
LOADS = """async (url) => {
  // What is downloaded instead says nothing.
  const settle = (load) => new Promise((done) => {
    load(done);
    setTimeout(() => done('silent'), 4000);
  });
  const element = (name, attributes) => settle((done) => {
    const made = document.createElement(name);
    made.onload = () => done('loaded');
    made.onerror = () => done('refused');
    Object.assign(made, attributes);
    document.body.append(made);
  });
  const tried = (work) => work.then(() => 'loaded', () => 'refused');
  const ways = {
    script: element('script', {src: url}),
    module: element('script', {src: url, type: 'module'}),
    style: element('link', {href: url, rel: 'stylesheet'}),
    import: tried(import(url)),
    worker: settle((done) => {
      try {
        const worker = new Worker(url);
        worker.onmessage = () => done('loaded');
        worker.onerror = () => done('refused');
      } catch { done('refused'); }
    }),
    service: tried(navigator.serviceWorker.register(url)),
    frame: element('iframe', {src: url}),
    object: element('object', {data: url, type: 'text/html'}),
    embed: element('embed', {src: url, type: 'image/svg+xml'}),
  };
  const settled = await Promise.all(Object.values(ways));
  return Object.fromEntries(Object.keys(ways).map((way, place) => [way, settled[place]]));
}"""


# Comes back when nothing was loaded for half a second.
QUIET = """async () => {
  let [count, since] = [-1, Date.now()];
  while (document.readyState !== 'complete' || Date.now() - since < 500) {
    const loaded = performance.getEntriesByType('resource').length;
    if (loaded !== count) [count, since] = [loaded, Date.now()];
    await new Promise((done) => setTimeout(done, 50));
  }
}"""
TICKET = "JSON.parse(localStorage.getItem('runyard session /')).ticket"


@pytest.fixture(scope="module")
def yard(module_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A server with one run, of which everything is an attack."""
    folder = tmp_path_factory.mktemp("hostile")
    texts = {"HTML": HTML, "SVG": SVG, "JS": ATTACK, "MARKDOWN": MARKDOWN}
    texts |= {"FIGURE": json.dumps(FIGURE), "TITLE": json.dumps(TITLE)}
    subprocess.run(
        [sys.executable, str(write_program(folder, LOGS))],
        cwd=folder,
        env={**os.environ, **stock_client(module_home), **texts},
        check=True,
        timeout=120,
    )
    return module_home


@pytest.fixture
def api(yard: Home) -> Api:
    return ensure_server(yard).api


@pytest.fixture
def place(api: Api) -> str:
    return f"{api.runs(limit=1)[0]['entity']}/birds"


def assert_nothing_ran(page: Page, api: Api) -> None:
    """After the page has settled: everything that was going to run has run."""
    # Not "networkidle": the page's stream of news is a request that does not end.
    page.evaluate(QUIET)
    assert page.evaluate("[localStorage.getItem('stolen'), window.stolen ?? null]") == [None, None]
    assert api.people.teams() == []


def watched(page: Page) -> list[str]:
    """The requests by which an attack tells what it got; filled as they leave the browser.

    One that the page's policy refuses is announced as well, and fails before it is sent.
    """
    seen: list[str] = []

    def note(request: Request) -> None:
        if "/api/stolen" in request.url and request.failure != "csp":
            seen.append(f"{request.url} {request.failure}")

    page.context.on("response", lambda response: note(response.request))
    page.context.on("requestfailed", note)
    return seen


def expect_drawn(page: Page, name: str) -> None:
    """A browser lets frames rest that are out of sight."""
    viewer = page.locator(f"[aria-label={name}] .viewer")
    viewer.scroll_into_view_if_needed()
    expect(viewer).to_have_attribute("data-state", "drawn", timeout=DRAWING)


def test_a_run_is_looked_at(yard: Home, api: Api, place: str, open_page: OpenPage) -> None:
    page = open_page(login_link(yard, place))
    seen = watched(page)
    expect(page.locator(".run-link")).to_have_text("<img src=x onerror=top.stolen=1>")
    for tab in ("", "?tab=media", "?tab=files", "?tab=console"):
        page.goto(f"{api.url}/{place}/runs/hostile{tab}")
        expect(page.get_by_role("heading", name="<img src=x onerror").first).to_be_visible()
        if tab == "?tab=media":
            frame = page.frame_locator("iframe.sandboxed")
            expect(frame.locator("#logged")).to_have_css("color", "rgb(255, 0, 0)")
            frame.locator("#link").click()
            picture = page.get_by_role("img", name="picture", exact=True)
            expect(picture).to_have_js_property("naturalWidth", 40)
            figure = page.frame_locator("iframe[title=figure]")
            expect(figure.get_by_text("hostile figure")).to_be_visible()
            expect(figure.locator("a[href^=javascript]")).to_have_count(0)
            expect_drawn(page, "plain")
            # Drawn or refused: either way nothing runs.
            hostile = page.locator("[aria-label=chart] .viewer")
            hostile.scroll_into_view_if_needed()
            expect(hostile).not_to_have_attribute("data-state", "waiting", timeout=DRAWING)
        assert_nothing_ran(page, api)
    assert seen == []
    # Frames in which a script runs are our viewers, and have no part in the page's origin.
    for viewer in page.locator("iframe:not([sandbox=''])").all():
        assert viewer.get_attribute("sandbox") == "allow-scripts"
        assert "/assets/viewer-" in (viewer.get_attribute("src") or "")


# What the script of a viewer could do if a chart made it: each is refused. It runs by a timer,
# since the browser lets what a test evaluates use `eval`.
POWERS = """() => new Promise((done) => setTimeout(async () => {
  const tried = async (act) => { try { return await act(), 'did'; } catch { return 'refused'; } };
  const loads = (name, attributes) => new Promise((settle) => {
    const made = document.createElement(name);
    made.onload = () => settle('did');
    made.onerror = () => settle('refused');
    Object.assign(made, attributes);
    document.body.append(made);
  });
  const inline = document.createElement('script');
  inline.textContent = 'window.ran = 1';
  document.body.append(inline);
  done({
    eval: await tried(() => (0, eval)('1')),
    function: await tried(() => new Function('return 1')()),
    inline: window.ran ? 'did' : 'refused',
    page: await tried(() => parent.document.title),
    storage: await tried(() => localStorage.length),
    cookie: await tried(() => document.cookie.length),
    fetch: await tried(() => fetch('/api/me')),
    image: await loads('img', {src: '/api/stolen?viewer'}),
    script: await loads('script', {src: '/api/stolen.js'}),
    worker: await tried(() => new Promise((settle, refuse) => {
      const worker = new Worker('data:text/javascript,postMessage(1)');
      worker.onmessage = settle;
      worker.onerror = refuse;
    })),
  });
}))"""


def test_a_viewer_can_do_nothing_but_draw(
    yard: Home, api: Api, place: str, open_page: OpenPage
) -> None:
    page = open_page(login_link(yard, f"{place}/runs/hostile?tab=media"))
    seen = watched(page)
    expect_drawn(page, "plain")
    frame = next(each for each in page.frames if "/assets/viewer-vega" in each.url)
    powers = frame.evaluate(POWERS)
    assert {power for power, result in powers.items() if result != "refused"} == set(), powers
    assert seen == []
    # What does leave the browser would have been noticed.
    page.evaluate("fetch('/api/stolen?by-the-page').then(() => null)")
    assert len(seen) == 1


def test_a_report_is_read(yard: Home, api: Api, place: str, open_page: OpenPage) -> None:
    discovery = read_discovery(yard)
    assert discovery is not None
    new = {"title": "<img src=x onerror=top.stolen=1>", "notes": MARKDOWN, "view": {}}
    made = Connection(discovery.url, discovery.key).post(f"/api/projects/{place}/reports", new)
    page = open_page(login_link(yard, f"{place}/reports/{made['id']}"))
    seen = watched(page)
    expect(page.locator(".markdown a")).to_have_text(["fine"])
    assert page.locator(".markdown :is(script, img, svg, iframe)").count() == 0
    assert_nothing_ran(page, api)
    assert seen == []


def test_files_are_downloaded_by_their_address(
    yard: Home, api: Api, place: str, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(login_link(yard))
    seen = watched(page)
    for name in FILES:
        with page.expect_download() as download:
            address = f"{api.url}/files/{place}/hostile/{name}?ticket={page.evaluate(TICKET)}"
            page.evaluate(f"location.href = '{address}'")
        assert download.value.suggested_filename == name
    assert_nothing_ran(page, api)
    assert seen == []


def test_a_page_of_ours_cannot_be_made_to_run_a_file(
    yard: Home, api: Api, place: str, open_page: OpenPage
) -> None:
    page = open_page(login_link(yard))
    seen = watched(page)
    page.on("download", lambda download: download.cancel())
    for name in FILES:
        address = f"{api.url}/files/{place}/hostile/{name}?ticket={page.evaluate(TICKET)}"
        results = page.evaluate(LOADS, address)
        loaded = {way for way, result in results.items() if result == "loaded"}
        assert loaded <= {"frame", "object", "embed"}, (name, results)
    assert_nothing_ran(page, api)
    assert seen == []
