"""A whole history as a Parquet file, for who asks as the stock client does."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet
import pytest

from runyard.server.history.exporting import exports, parquet_file
from runyard.server.tracker import Tracker
from tests.server.asgi import Answer, Client
from tests.server.conftest import Upsert

_PLACE = '(name: "birds") { run(name: "run1") { %s } } }'
FILES = "query RunParquetHistory { project" + _PLACE % "parquetHistory { parquetUrls liveData }"
LAST_STEP = "query RunHistoryKeys { project" + _PLACE % "historyKeys"
NEW, OLD, CORE = "W&B Public Client 0.31.0", "W&B Public Client 0.27.2", "wandb-core"


def ask(client: Client, query: str, agent: str = NEW) -> Any:
    content = json.dumps({"query": query}).encode()
    answer = client.request("POST", "/graphql", [content], headers={"user-agent": agent}).json()
    assert "errors" not in answer, answer
    return answer["data"]["project"]["run"]


def files(client: Client, agent: str = NEW) -> Any:
    return ask(client, FILES, agent)["parquetHistory"]


LIVE = {"parquetUrls": [], "liveData": [{"_step": 0}]}


def log(client: Client, *rows: dict[str, Any], end: bool = True) -> None:
    lines = [json.dumps(row) for row in rows]
    body: dict[str, Any] = {"files": {"wandb-history.jsonl": {"offset": 0, "content": lines}}}
    if end:
        body |= {"complete": True, "exitcode": 0}
    assert client.post("/files/ada/birds/run1/file_stream", body).status == 200


def get(client: Client, url: str, method: str = "GET", **headers: str) -> Answer:
    return client.request(method, urlsplit(url).path, key=None, headers=headers)


def download(client: Client) -> list[dict[str, Any]]:
    """As older clients do: the size first, then the file."""
    (url,) = files(client)["parquetUrls"]
    size = get(client, url, "HEAD")
    assert (size.status, size.body) == (200, b"")
    answer = get(client, url)
    assert answer.status == 200
    assert size.headers["content-length"] == str(len(answer.body))
    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(io.BytesIO(answer.body)).to_pylist()
    return rows


def test_a_download_gets_a_file_and_a_scan_the_rows(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    log(client, {"_step": 0, "loss": 1.5})
    assert files(client)["liveData"] == []
    assert files(client, OLD) == files(client, CORE) == LIVE
    # A scan asks for the last step first; what comes after it is a download again.
    ask(client, LAST_STEP)
    assert files(client) == LIVE
    assert files(client)["liveData"] == []
    # Also where the first of two questions was no scan's.
    for _ in range(2):
        ask(client, LAST_STEP)
    assert [files(client)["liveData"] for _ in range(2)] == [LIVE["liveData"], []]
    # Whoever merely looks at the keys is not about to scan.
    ask(client, LAST_STEP.replace("RunHistoryKeys", "LoadRun"))
    assert files(client)["liveData"] == []


def test_a_run_that_has_not_ended_has_no_file(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    log(client, {"_step": 0, "loss": 1.5}, end=False)
    assert files(client) == LIVE


def test_each_key_has_a_column_of_one_type(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    rows: list[dict[str, Any]] = [
        {"_step": 0, "up": 1, "text": "grün", "deep": {"er": 1, "x": "a"}, "many": [1, 2.5]},
        {"_step": 3, "up": 2.5, "true": True, "deep": {"er": 2.5}, "mixed": 1, "empty": {}},
        {"_step": 4, "up": math.nan, "mixed": "1", "large": 2**70, "half": "\ud800", "none": None},
        {"_step": 9, "up": math.inf, "mixed": [True], "file": {"_type": "image-file", "size": 5}},
    ]
    log(client, *rows)
    found = download(client)
    assert math.isnan(found[2].pop("up"))
    present = [{key: value for key, value in row.items() if value is not None} for row in found]
    assert present == [
        {"_step": 0, "up": 1.0, "text": "grün", "deep": {"er": 1.0, "x": "a"}, "many": [1.0, 2.5]},
        {"_step": 3, "up": 2.5, "true": True, "deep": {"er": 2.5, "x": None}, "mixed": "1",
         "empty": "{}"},
        {"_step": 4, "mixed": '"1"', "large": float(2**70), "half": "?"},
        {"_step": 9, "up": math.inf, "mixed": "[true]",
         "file": {"_type": "image-file", "size": 5}},
    ]  # fmt: skip
    assert set(found[0]) == set().union(*rows)


def test_a_long_history_comes_in_pages(
    client: Client, upsert: Upsert, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_file, "_PAGE_ROWS", 7)
    monkeypatch.setattr(parquet_file, "_GROUP_ROWS", 20)
    upsert(name="run1")
    rows = [{"_step": step, "loss": step / 2} for step in range(100)]
    log(client, *rows)
    (url,) = files(client)["parquetUrls"]
    file = pyarrow.parquet.ParquetFile(io.BytesIO(get(client, url).body))
    groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
    assert [group.num_rows for group in groups] == [21, 21, 21, 21, 16]
    assert file.read().to_pylist() == rows


def test_only_a_download_gets_the_file_and_then_it_is_gone(
    client: Client, tracker: Tracker, upsert: Upsert
) -> None:
    upsert(name="run1")
    log(client, {"_step": 0, "loss": 1.5})
    folder: Path = tracker.home.exports
    (url,) = files(client)["parquetUrls"]
    # A scan of some keys reads parts.
    assert get(client, url, range="bytes=0-7").status == 409
    get(client, url, "HEAD")
    assert len(list(folder.iterdir())) == 1
    assert get(client, url).status == 200
    assert list(folder.iterdir()) == []
    assert get(client, f"{url[:-4]}AAAA", "HEAD").status == 403


def test_files_that_nobody_fetched_go(
    client: Client, tracker: Tracker, upsert: Upsert, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "_MOST_FILES", 3)
    upsert(name="run1")
    log(client, {"_step": 0, "loss": 1.5})
    for _ in range(5):
        (url,) = files(client)["parquetUrls"]
        assert get(client, url, "HEAD").status == 200
        assert len(list(tracker.home.exports.iterdir())) <= 3
    tracker.exports.clear()
    assert list(tracker.home.exports.iterdir()) == []


def test_without_pyarrow_a_download_is_refused_and_a_scan_works(
    client: Client, upsert: Upsert, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runyard.server.wandb_api.fields.history_files.can_write", lambda: False)
    upsert(name="run1")
    log(client, {"_step": 0, "loss": 1.5})
    ask(client, LAST_STEP)
    assert files(client) == LIVE
    content = json.dumps({"query": FILES}).encode()
    answer = client.request("POST", "/graphql", [content], headers={"user-agent": NEW}).json()
    (error,) = answer["errors"]
    assert "parquetHistory" in error["message"]
    assert "pip install 'runyard[export]'" in error["message"]
