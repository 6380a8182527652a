"""The schema for editors: made from the records, and of one mind with the reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runyard.config.project_shape import ProjectFile
from runyard.reading.documents import read_document
from runyard.reading.fields import Fields
from runyard.reading.problems import Findings
from runyard.reading.records import read_record, settings_of, without_empty
from tests.script_modules import load_script

TABLES = load_script("settings_tables")

PAGE = Path(__file__).parents[2] / "docs" / "runyard-file.schema.json"

GOOD = [
    "",
    "command: python train.py",
    "command: [python, train.py, --n, 3]",
    "resources: {gpus: 0, memory: 16G, time: 1-12:00:00, mail: END, exclude: [a, b]}",
    "resources: {memory: 0, time: 2h30m}",
    "resources:",
    "environment: {kind: singularity, image: a.sif, variables: {A: 1, B: x}}",
    "agents: {per_gpu: auto, form: nodes, chain: 3}",
    "clusters: {narval: {resources: {account: def-me}, profile: {network: {internet: no}}}}",
    "profile: {limits: {by_qos: {q: {longest: 1d}}}, gpus: {types: {a: {memory_gb: 40}}}}",
    "distributed: script",
]
BAD = [
    "comand: a",
    "resources: {gpus: -1}",
    "resources: {gpus: '2'}",
    "resources: {time: 90}",
    "resources: {memory: 16}",
    "resources: {memory: 16K}",
    "resources: {mail: SOMETIMES}",
    "environment: {kind: conada}",
    "environment: {build: maybe}",
    "environment: {variables: {A: 1.10}}",
    "agents: {per_gpu: many}",
    "clusters: {narval: {cluster: fir}}",
    "profile: {limits: {by_qos: {q: {longst: 1d}}}}",
    "tracking: [a]",
    "command: []",
]


def test_the_page_is_the_records_own() -> None:
    written = json.loads(PAGE.read_text())
    assert written == TABLES.project_schema(), "write it anew: python scripts/settings_pages.py"


@pytest.mark.parametrize(
    ("name", "tables"),
    [("runyard-file", TABLES.project_tables()), ("clusters", TABLES.profile_tables())],
)
def test_the_documentation_lists_every_key(name: str, tables: str) -> None:
    page = (PAGE.parent / f"{name}.md").read_text()
    assert page == TABLES.with_tables(page, tables), (
        "write it anew: python scripts/settings_pages.py"
    )
    assert "| `time` |" in page or "| `longest` |" in page


def test_every_key_can_be_completed_and_says_what_it_is() -> None:
    schema: Any = TABLES.project_schema()
    assert set(schema["properties"]) == set(settings_of(ProjectFile))
    assert schema["definitions"]["Resources"]["properties"]["time"]["description"]


@pytest.mark.parametrize("text", [*GOOD, *BAD])
def test_schema_and_reader_are_of_one_mind(text: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    data = read_document(text, clocks=True).data or {}
    findings = Findings()
    read_record(ProjectFile, Fields(without_empty(data), (), findings))
    validator = jsonschema.Draft7Validator(TABLES.project_schema())
    assert (not findings.has_errors) == validator.is_valid(data) == (text in GOOD)
