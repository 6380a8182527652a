"""The schema for editors: made from the tables, and of one mind with the reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runyard.reading.documents import DocumentError, read_document
from runyard.search.options import OPTION_KEYS
from runyard.search.sweep import KEYS, read_sweep
from tests.script_modules import load_script

sweep_schema = load_script("sweep_schema").sweep_schema

PAGE = Path(__file__).parents[2] / "docs" / "sweep-file.schema.json"
CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.yaml"))

# What a schema cannot say: it compares no two values, counts no names, and 2.0 is an integer to it.
BEYOND_A_SCHEMA = {
    "bad_bayes_without_metric": "depends on the method",
    "bad_bounds_equal": "two numbers compared",
    "bad_bounds_nested": "two numbers compared",
    "bad_bounds_the_wrong_way_round": "two numbers compared",
    "bad_early_terminate_without_metric": "depends on another key",
    "bad_exponent_too_large": "arithmetic",
    "bad_grid_over_a_continuum": "depends on the method",
    "bad_hyperband_s_no_integer": "2.0 is an integer",
    "bad_metrics_at_the_top": "depends on the method",
    "bad_mixed_bounds": "1 and 1.0 are the same",
    "bad_mixed_bounds_nested": "1 and 1.0 are the same",
    "bad_name_that_yaml_reads": "keys are text in JSON",
    "bad_probabilities_of_another_length": "two lengths compared",
    "bad_probabilities_too_much": "a sum",
    "bad_program_missing": "depends on another key",
    "bad_seed_twice": "depends on another key",
    "bad_template": "names inside of text",
    "bad_scheduler": "depends on another key",
    "bad_scheduler_with_more": "depends on another key",
}


def test_the_page_is_the_tables_own() -> None:
    written = json.loads(PAGE.read_text())
    assert written == sweep_schema(), "write it anew: python scripts/sweep_schema.py"


def test_every_key_that_is_read_can_be_completed() -> None:
    schema: Any = sweep_schema()
    assert set(schema["properties"]) == set(KEYS)
    extension = schema["properties"]["runyard"]["anyOf"][0]
    assert set(extension["properties"]) == set(OPTION_KEYS)


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.stem)
def test_schema_and_reader_are_of_one_mind(file: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    try:
        data = read_document(file.read_text()).data
    except DocumentError:
        return
    sweep, _ = read_sweep(data)
    found = list(jsonschema.Draft7Validator(sweep_schema()).iter_errors(data))
    if file.stem in BEYOND_A_SCHEMA:
        assert sweep is None
        assert not found
    else:
        assert (sweep is None) == bool(found), [error.message for error in found]
