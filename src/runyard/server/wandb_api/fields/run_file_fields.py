"""Files that belong to a run."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import mimetypes
import posixpath
import urllib.parse

from runyard.server.people.signed_addresses import Kind
from runyard.server.runs import run_files, runs
from runyard.server.runs.patterns import BadPattern
from runyard.server.runs.run_files import UnsafeName, check_name
from runyard.server.store.sql import Row
from runyard.server.wandb_api.graphql.inputs import Arguments, opaque
from runyard.server.wandb_api.graphql.pages import (
    connection,
    cursor_text,
    edge,
    page_size,
    timestamp,
)
from runyard.server.wandb_api.graphql.request import Refusal, Request, Source, must_write, own_run


def in_run(request: Request, row: Row) -> Source:
    async def files(arguments: Arguments) -> Source:
        try:
            rows, more = await request.tracker.read(
                run_files.list_files,
                row["key"],
                # What was saved as ./notes.txt is there as notes.txt, and asked for as either.
                names=[posixpath.normpath(name) for name in arguments.texts("names")],
                pattern=arguments.text("pattern"),
                after=cursor_text(arguments),
                first=page_size(arguments),
            )
        except BadPattern as error:
            raise Refusal(f"pattern: {error}") from error
        return connection(
            (edge(file["name"], file_fields(request, row, file)) for file in rows), more=more
        )

    return {"files": files, "fileCount": request.reads(run_files.count_files, row["key"])}


def file_fields(request: Request, run: Row, file: Row) -> Source:
    place = (run["entity"], run["project_name"], run["id"], file["name"])
    address = "/".join(urllib.parse.quote(part, safe="/") for part in place)
    url = f"{request.base_url}/files/{address}"

    def choose_url(arguments: Arguments) -> str:
        if not arguments.get("upload"):
            return url
        must_write(request, run["entity"])
        return request.address(Kind.RUN_FILE_UP, run["key"], file["name"])

    return {
        "__typename": "File",
        "id": opaque("File", json.dumps([run["key"], file["name"]])),
        "name": file["name"],
        "displayName": file["name"],
        "url": choose_url,
        "directUrl": url,
        "sizeBytes": file["size"],
        "mimetype": mimetypes.guess_type(file["name"])[0] or "application/octet-stream",
        "md5": file["md5"],
        "digest": file["md5"],
        "updatedAt": timestamp(file["updated_at"]),
    }


def mutations(request: Request) -> Source:
    async def named_run(arguments: Arguments) -> Row:
        entity = request.entity(arguments)
        project, run = arguments.text("projectName") or "", arguments.text("runName") or ""
        row = await request.tracker.read(runs.by_path, entity, project, run)
        if row is None or not request.may_write(entity):
            raise Refusal(f"no run {run} in {entity}/{project}")
        must_write(request, entity)
        return row

    async def create_run_files(arguments: Arguments) -> Source:
        row = await named_run(arguments)
        files = []
        for name in arguments.texts("files"):
            try:
                check_name(name)
            except UnsafeName as error:
                raise Refusal(str(error)) from error
            url = request.address(Kind.RUN_FILE_UP, row["key"], name)
            files.append({"name": name, "uploadUrl": url})
        return {"runID": str(row["key"]), "uploadHeaders": [], "files": files}

    async def mark_uploaded(arguments: Arguments) -> Source:
        # A file is there when its upload was answered; nothing is left to be done.
        await named_run(arguments)
        return {"success": True}

    async def delete_files(arguments: Arguments) -> Source:
        wanted = [_read_id(text) for text in arguments.texts("files")]
        for key, _ in wanted:
            await own_run(request, key)
        for key, name in wanted:
            await request.tracker.write(run_files.delete_file, key, name)
            await asyncio.to_thread(request.tracker.uploads.remove, key, name)
        return {"success": True}

    return {
        "createRunFiles": create_run_files,
        "markRunFilesUploaded": mark_uploaded,
        "deleteFiles": delete_files,
    }


def _read_id(id_: str) -> tuple[int, str]:
    try:
        kind, _, rest = base64.b64decode(id_, validate=True).decode().partition(":")
        run, name = json.loads(rest)
        if kind == "File" and type(run) is int and 0 < run < 2**63 and isinstance(name, str):
            return run, name
    except (binascii.Error, ValueError, TypeError):
        pass
    raise Refusal(f"{id_[:100]!r} is not the id of a file")
