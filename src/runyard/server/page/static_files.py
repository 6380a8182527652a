"""The built page, as the browser loads it.

`runyard/dashboard/static/` is made by the package's build. The files are few and small, so they are
read once; next to each lie its packed forms, from which the browser's best is taken. The viewers
(charts by Vega and Plotly, point clouds, molecules) are large and lie there packed only.
"""

from __future__ import annotations

import asyncio
import gzip
import html
import mimetypes
import shlex
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from runyard.server.http.answers import HttpError
from runyard.server.http.routes import Access, Endpoint

STATIC = Path(__file__).parents[2] / "dashboard" / "static"
_PACKED = {"br": ".br", "gzip": ".gz"}
_FOR_A_YEAR = "public, max-age=31536000, immutable"
# What programs upload is shown on the page; whatever it holds, it must not run as ours. Scripts are
# the built files alone: of what a run brings nothing goes out as a script (`headers.kind_of_file`).
# Styles may stand in the text, since HTML that was logged is shown under this policy too; the frame
# that it is shown in has no address. The only frames with an address are the viewers.
_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "media-src 'self'; style-src 'self' 'unsafe-inline'; frame-src 'self'; base-uri 'self'; "
    "form-action 'none'; frame-ancestors 'self'"
)
# A viewer draws what users' programs logged. It has no origin, so no part in the page's session,
# and can load and send nothing: what it draws comes by a message from the page. Its document names
# the hash of its only script (dashboard/app/viewers.mjs): no other can run, and none by eval.
_VIEWER_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
_HEADERS = {"Content-Security-Policy": _POLICY}


@dataclass
class Asset:
    kind: str
    bodies: dict[str, bytes] = field(default_factory=dict)  # by content encoding; "" is plain


class BuiltPage:
    """Everything that the build left, in memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def document(self) -> str | None:
        """The one HTML file, whose every address is relative; None where nothing was built."""
        try:
            return (self._folder / "index.html").read_text()
        except OSError:
            return None

    @property
    def why_missing(self) -> str:
        try:
            return (self._folder / "not-built.txt").read_text()
        except OSError:
            return "It was not built when runyard was installed."

    @cached_property
    def assets(self) -> dict[str, Asset]:
        assets: dict[str, Asset] = {}
        for path in sorted(self._folder.glob("assets/*")):
            if path.suffix in _PACKED.values():
                continue
            asset = Asset(mimetypes.guess_type(path.name)[0] or "application/octet-stream")
            asset.bodies[""] = path.read_bytes()
            for encoding, ending in _PACKED.items():
                packed = path.with_name(path.name + ending)
                if packed.exists():
                    asset.bodies[encoding] = packed.read_bytes()
            assets[path.name] = asset
        return assets

    def viewer(self, name: str) -> Path | None:
        """The packed document of a viewer."""
        known = {path.name: path for path in self._folder.glob("assets/viewer-*.html.gz")}
        return known.get(f"{name}.gz")


BUILT = BuiltPage(STATIC)


async def asset(request: Request) -> Response:
    name = request.path_params["name"]
    viewer = BUILT.viewer(name)
    if viewer is not None:
        return await asyncio.to_thread(_send_viewer, viewer, request)
    asset = BUILT.assets.get(name)
    if asset is None:
        raise HttpError(404, f"there is no {name[:200]!r} in this version's page: load it anew")
    accepted = request.headers.get("accept-encoding", "")
    encoding = next((way for way in _PACKED if way in accepted and way in asset.bodies), "")
    headers = {**_HEADERS, "Cache-Control": _FOR_A_YEAR, "Vary": "Accept-Encoding"}
    if encoding:
        headers["Content-Encoding"] = encoding
    return Response(asset.bodies[encoding], headers=headers, media_type=asset.kind)


def _send_viewer(packed: Path, request: Request) -> Response:
    body = packed.read_bytes()
    headers = {"Content-Security-Policy": _VIEWER_POLICY, "Cache-Control": _FOR_A_YEAR}
    headers["Vary"] = "Accept-Encoding"
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
    else:
        body = gzip.decompress(body)
    return HTMLResponse(body, headers=headers)


async def page(request: Request) -> Response:
    """The app, whatever the address says: what is there, it asks itself, once it is logged in."""
    if "text/html" not in request.headers.get("accept", ""):
        return signpost(request)
    document = BUILT.document
    headers = {**_HEADERS, "Cache-Control": "no-cache"}
    if document is None:
        return HTMLResponse(_missing(_command(request)), 503, headers=headers)
    # Where the app's root is, from here. A proxy may have cut off the beginning of the address,
    # so only the way back is known.
    root = "../" * (request.scope["raw_path"].count(b"/") - 1) or "./"
    return HTMLResponse(document.replace('<base href="./"', f'<base href="{root}"'), 200, headers)


def signpost(request: Request) -> Response:
    """For whoever is no browser: says how to see the thing in a terminal, and nothing of it."""
    return PlainTextResponse(
        f"This is runyard's server. To see it in a terminal:\n\n  {_command(request)}\n"
    )


def _command(request: Request) -> str:
    path = request.path_params
    name = path.get("run") or path.get("sweep") or ""
    # Quoted: the address may come from anybody, and the command is there to be copied.
    named = f" {shlex.quote(name)}" if name.isprintable() and name else ""
    if "sweep" in path:
        return f"runyard show{named} --best" if named else "runyard runs --sweeps"
    return f"runyard show{named}" if named else "runyard runs"


def _missing(command: str) -> str:
    return (
        "<!doctype html><meta charset=utf-8><title>runyard</title>"
        "<body style='font:16px/1.5 system-ui;max-width:42rem;margin:4rem auto;padding:0 1rem'>"
        f"<h1>The page is not built</h1><p>{html.escape(BUILT.why_missing)}</p>"
        "<p>Everything else works. To build it, repeat the installation, which says what is "
        "missing:</p><pre>pip install --verbose --force-reinstall --no-deps .</pre>"
        f"<p>Until then, in a terminal:</p><pre>{html.escape(command)}</pre>"
    )


ENDPOINTS = [
    # Nothing of a run is in what these answer.
    Endpoint("GET", "/", page, access=Access.EVERYBODY),
    Endpoint("GET", "/jobs", page, access=Access.EVERYBODY),
    Endpoint("GET", "/settings", page, access=Access.EVERYBODY),
    Endpoint("GET", "/assets/{name}", asset, access=Access.EVERYBODY),
    Endpoint("GET", "/{entity}/{project}", page, access=Access.EVERYBODY),
    Endpoint("GET", "/{entity}/{project}/runs/{run}", page, access=Access.EVERYBODY),
    Endpoint("GET", "/{entity}/{project}/sweeps/{sweep}", page, access=Access.EVERYBODY),
    # Further views: reports, and links of the client's to artifacts or a run's tabs.
    Endpoint("GET", "/{entity}/{project}/{view:path}", page, access=Access.EVERYBODY),
]
