"""Command lines of trials: every macro, as W&B's own agent expands it, and what goes beyond."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from runyard.node.attempt.command_line import default_command, expand
from runyard.node.attempt.parameter_file import parameter_file

VALUES = {"lr": 3e-05, "batch": 64, "amp": True, "debug": False, "opt": {"name": "adam"}, "x": None}
WITH_PYTHON = str(Path(sys.executable).parent)  # A virtual environment: it has a `python`.
ENVIRON = {"PATH": WITH_PYTHON, "SCRATCH": "/scratch/ada"}


def expanded(
    command: list[object] | None, values: Mapping[str, Any] = VALUES, program: str = "train.py"
) -> list[str]:
    return expand(command, program, values, ENVIRON, lambda text: f"FILE{text}")


@pytest.mark.parametrize(
    ("macro", "words"),
    [
        ("${env}", ["/usr/bin/env"]),
        ("${interpreter}", ["python"]),
        ("${program}", ["train.py"]),
        ("${args}", ["--lr=3e-05", "--batch=64", "--amp=True", "--debug=False",
                     "--opt={'name': 'adam'}", "--x=None"]),
        ("${args_no_equals}", ["--lr", "3e-05", "--batch", "64", "--amp", "True", "--debug",
                               "False", "--opt", "{'name': 'adam'}", "--x", "None"]),
        ("${args_no_hyphens}", ["lr=3e-05", "batch=64", "amp=True", "debug=False",
                                "opt={'name': 'adam'}", "x=None"]),
        ("${args_append_hydra}", ["+lr=3e-05", "+batch=64", "+amp=True", "+debug=False",
                                  "+opt={'name': 'adam'}", "+x=None"]),
        ("${args_override_hydra}", ["++lr=3e-05", "++batch=64", "++amp=True", "++debug=False",
                                    "++opt={'name': 'adam'}", "++x=None"]),
        ("${args_no_boolean_flags}", ["--lr=3e-05", "--batch=64", "--amp",
                                      "--opt={'name': 'adam'}", "--x=None"]),
        ("${args_json}", [json.dumps(VALUES)]),
        ("${args_json_file}", [f"FILE{json.dumps(VALUES)}"]),
        ("${envvar:SCRATCH}", ["/scratch/ada"]),
        ("${envvar:UNSET}", ["UNSET"]),
        ("--out=${envvar:SCRATCH}/${envvar:UNSET}", ["--out=/scratch/ada/UNSET"]),
        ("${nothing_of_ours}", []),
        ("--flag", ["--flag"]),
        (3, ["3"]),
    ],
)  # fmt: skip
def test_a_macro_becomes_its_words(macro: object, words: list[str]) -> None:
    assert expanded([macro]) == words


@pytest.mark.parametrize(
    ("element", "words"),
    [
        ("--batch_size=${batch}", ["--batch_size=64"]),
        ("${lr}", ["3e-05"]),
        ("${batch}x${batch}", ["64x64"]),
        ("${SCRATCH}/data", ["/scratch/ada/data"]),
        ("${SCRATCH}", ["/scratch/ada"]),
        ("a ${nobody} b", ["a ${nobody} b"]),
        ("$HOME {lr} ${}", ["$HOME {lr} ${}"]),
    ],
)
def test_a_name_in_braces_is_a_parameter_or_a_variable_of_the_node(
    element: str, words: list[str]
) -> None:
    assert expanded([element]) == words


@pytest.mark.parametrize("kind", ["args", "args_no_equals", "args_no_hyphens", "args_append_hydra",
    "args_override_hydra", "args_no_boolean_flags", "args_json"])  # fmt: skip
def test_arguments_are_those_of_the_stock_agent(kind: str) -> None:
    # Here, since it takes a second, and each test process reads this file.
    from wandb.sdk.launch.sweeps import utils as stock

    command = {"args": {name: {"value": value} for name, value in VALUES.items()}}
    assert expanded([f"${{{kind}}}"]) == stock.create_sweep_command_args(command)[kind]


def test_without_a_command_python_runs_the_program() -> None:
    assert expanded(None, {"lr": 0.1}) == ["/usr/bin/env", "python", "train.py", "--lr=0.1"]
    assert expanded([], {}) == ["/usr/bin/env", "python", "train.py"]


def test_where_there_is_no_python_python3_is_taken(tmp_path: Path) -> None:
    (tmp_path / "python3").symlink_to(sys.executable)
    words = expand(["${interpreter}"], "t.py", {}, {"PATH": str(tmp_path)}, str)
    assert words == ["python3"]


def test_a_program_that_python_cannot_run_starts_as_in_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("tool", "job.sh"):
        (tmp_path / name).touch()
    (tmp_path / "tool").chmod(0o755)
    assert expanded(None, {"lr": 1}, "tool") == ["./tool", "--lr=1"]
    assert expanded(None, {}, f"{tmp_path}/tool") == [f"{tmp_path}/tool"]
    assert expanded(None, {}, "job.sh") == ["/usr/bin/env", "sh", "job.sh"]
    assert default_command(None) == ("${env}", "${interpreter}", "${program}", "${args}")


def test_a_macro_wins_over_a_parameter_of_its_name() -> None:
    assert expanded(["${program}"], {"program": "x"}) == ["train.py"]


_SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)  # fmt: skip
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_.-]{0,8}\Z"), _VALUES, max_size=4))
def test_the_client_reads_back_what_the_parameter_file_says(values: dict[str, Any]) -> None:
    read = yaml.safe_load(parameter_file(values))
    assert read.pop("wandb_version") == 1
    assert read == {name: {"value": value} for name, value in values.items()}
