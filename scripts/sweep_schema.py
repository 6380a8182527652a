"""Write docs/sweep-file.schema.json, for editors, from the tables that read sweep files.

.venv/bin/python scripts/sweep_schema.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from runyard.search.budget import PATTERN
from runyard.search.command import MACROS
from runyard.search.early_terminate import ASHA_FORMS
from runyard.search.forms import CATEGORICAL, CONSTANT, FORMS, WEIGHTED, Form
from runyard.search.objectives import GOALS, IMPUTES
from runyard.search.options import METHODS, MODULE, NAN, RETRIES
from runyard.search.parameters import NAME
from runyard.search.scheduler import ENGINES, SCHEDULER_KEYS
from runyard.search.sweep import WANDB_METHODS
from runyard.search.tasks import TASK_NAME

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_MODULE: Schema = {"type": "string", "pattern": f"^{MODULE.pattern}$"}
_NUMBER: Schema = {"type": "number"}
_POSITIVE: Schema = {"type": "number", "exclusiveMinimum": 0}
_METRICS: Schema = {"type": "array", "minItems": 2, "items": {"$ref": "#/definitions/metric"}}
_NEVER_EMPTY = ("method", "parameters", "settings")


def sweep_schema() -> Schema:
    """All checks of a sweep file that do not compare two of its values."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Sweep file",
        "description": "A W&B sweep, with runyard's extension.",
        **_mapping(_top_level(), required=["method"]),
        "anyOf": [
            {"required": ["parameters"]},
            {
                "properties": {"scheduler": {"required": ["search_space"]}},
                "required": ["scheduler"],
            },
        ],
        "definitions": {
            "parameters": {
                "type": "object",
                "minProperties": 1,
                "propertyNames": {"pattern": f"^{NAME.pattern}$"},
                "additionalProperties": {"anyOf": _parameter_forms()},
            },
            "metric": _metric(),
            "hyperband": _hyperband(),
        },
    }


def _top_level() -> Schema:
    properties: Schema = {
        "method": {"enum": list(WANDB_METHODS)},
        "parameters": {"$ref": "#/definitions/parameters"},
        "metric": {"$ref": "#/definitions/metric"},
        "metrics": _METRICS,
        "program": _TEXT,
        "command": {
            "type": "array",
            "minItems": 1,
            "items": {
                "anyOf": [
                    {"enum": [f"${{{macro}}}" for macro in MACROS]},
                    {"type": ["string", "number", "boolean"]},
                ]
            },
        },
        "early_terminate": {"$ref": "#/definitions/hyperband"},
        "run_cap": _whole(1),
        **dict.fromkeys(("name", "description", "entity", "project"), _TEXT),
        "controller": {
            "type": "object",
            "required": ["type"],
            "properties": {"type": {"enum": ["cloud", "local"]}},
        },
        "scheduler": _mapping(
            dict.fromkeys(SCHEDULER_KEYS, _TEXT) | {"engine": {"enum": list(ENGINES)}},
            required=["engine"],
        ),
        **dict.fromkeys(("job", "image_uri", "apiVersion"), _TEXT),
        "kind": {"const": "sweep"},
        "settings": {},
        "runyard": _mapping(_extension()),
    }
    # An empty key counts as not written.
    return {
        key: schema if key in _NEVER_EMPTY else {"anyOf": [schema, {"type": "null"}]}
        for key, schema in properties.items()
    }


def _extension() -> Schema:
    return {
        "method": {"enum": list(METHODS)},
        "metrics": _METRICS,
        "constraints": {
            "type": "array",
            "items": {
                **_mapping({"metric": _TEXT, "max": _NUMBER, "min": _NUMBER}, required=["metric"]),
                "oneOf": [{"required": ["max"]}, {"required": ["min"]}],
            },
        },
        "early_terminate": {"anyOf": [{"$ref": "#/definitions/hyperband"}, _asha()]},
        "seed": _whole(0),
        "seeds": {
            "anyOf": [
                _whole(1),
                {
                    "type": "array",
                    "minItems": 1,
                    "uniqueItems": True,
                    "items": {"type": "integer"},
                },
            ]
        },
        "seed_parameter": {"type": "string", "pattern": f"^{NAME.pattern}$"},
        "name": _TEXT,
        "retries": {"anyOf": [_whole(0), _mapping({cause: _whole(0) for cause in RETRIES})]},
        "retry_failed": {"type": "boolean"},
        "stop_after_failures": _whole(0),
        "nan": {"enum": list(NAN)},
        "slots_per_gpu": {"anyOf": [_whole(1), {"const": "auto"}]},
        "warm": {"anyOf": [_MODULE, {"type": "array", "minItems": 1, "items": _MODULE}]},
        "tasks": {
            "type": "array",
            "minItems": 1,
            "items": _mapping(
                {
                    "name": {"type": "string", "pattern": f"^{TASK_NAME.pattern}$"},
                    "command_line": {"type": "string", "minLength": 1},
                    "values": {"type": "object"},
                },
                required=["name", "command_line"],
            ),
        },
        "job_log": _TEXT,
        "budget": {"type": "string", "pattern": PATTERN},
    }


def _parameter_forms() -> list[Schema]:
    values = {"type": "array", "minItems": 1}
    chances = {"type": "array", "minItems": 1, "items": {"type": "number", "minimum": 0}}
    bare = ("int_uniform", "uniform")  # They follow from min and max.
    return [
        _mapping({"parameters": {"$ref": "#/definitions/parameters"}}, required=["parameters"]),
        _form(CONSTANT, {"value": {}}, named=False, required=("value",)),
        _form(CATEGORICAL, {"values": values}, named=False, required=("values",)),
        _form(
            WEIGHTED,
            {"values": values, "probabilities": chances},
            named=False,
            required=("values", "probabilities"),
        ),
        *(
            _form(name, _keys(name, form), named=name not in bare, required=form.required)
            for name, form in FORMS.items()
        ),
    ]


def _keys(name: str, form: Form) -> Schema:
    kinds: Schema = {"q": _POSITIVE, "a": _POSITIVE, "b": _POSITIVE}
    kinds["sigma"] = {"type": "number", "minimum": 0}
    if name == "int_uniform":
        kinds["min"] = kinds["max"] = {"type": "integer"}
    if form.is_positive:
        kinds["min"] = _POSITIVE
    defaults = {key: {"default": value} for key, value in form.defaults.items()}
    return {key: {**kinds.get(key, _NUMBER), **defaults.get(key, {})} for key in form.keys}


def _form(name: str, keys: Schema, named: bool, required: tuple[str, ...]) -> Schema:
    return _mapping(
        {"distribution": {"const": name}, **keys},
        required=[*required, *(["distribution"] if named else [])],
    )


def _metric() -> Schema:
    return _mapping(
        {
            "name": {"type": "string", "minLength": 1},
            "goal": {"enum": list(GOALS), "default": "minimize"},
            "target": _NUMBER,
            "impute": {"enum": list(IMPUTES)},
            "impute_while_running": {"enum": ["false", False, *IMPUTES]},
        },
        required=["name"],
    )


def _hyperband() -> Schema:
    return {
        **_mapping(
            {
                "type": {"const": "hyperband"},
                "min_iter": _whole(1),
                "max_iter": _whole(1),
                "s": _whole(1),
                "eta": {"type": "number", "exclusiveMinimum": 1, "default": 3},
                "strict": {"type": "boolean", "default": True},
            },
            required=["type"],
        ),
        "anyOf": [{"required": ["min_iter"]}, {"required": ["max_iter", "s"]}],
        "dependencies": {"max_iter": ["s"]},
    }


def _asha() -> Schema:
    return _mapping(
        {
            "type": {"const": "asha"},
            "min_iter": {**_whole(1), "default": 1},
            "max_iter": _whole(1),
            "eta": {"type": "number", "exclusiveMinimum": 1, "default": 3},
            "form": {"enum": list(ASHA_FORMS), "default": ASHA_FORMS[0]},
            "step": _TEXT,
        },
        required=["type"],
    )


def _mapping(properties: Schema, required: list[str] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        **({"required": required} if required else {}),
    }


def _whole(least: int) -> Schema:
    return {"type": "integer", "minimum": least}


if __name__ == "__main__":
    page = Path(__file__).parent.parent / "docs" / "sweep-file.schema.json"
    page.write_text(json.dumps(sweep_schema(), indent=2) + "\n")
