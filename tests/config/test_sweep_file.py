"""Sweep files from disk and from standard input, with what a command line changes."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from runyard.config.overrides import Overrides
from runyard.config.sweep_file import SweepFile, read_sweep_file
from runyard.errors import ConfigError, NotFoundError, UsageError

GOOD = """\
program: train.py
method: random
metric: {name: loss}
parameters:
  lr:
    min: 0.001
    max: 0.1
  opt:
    parameters:
      beta: {values: [0.9, 0.99]}
  model.width: {values: [1, 2]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("sweep.yaml").write_text(GOOD)
    return tmp_path


def read(text: str | None = None, needs_program: bool = False, **overrides: Any) -> SweepFile:
    if text is not None:
        Path("sweep.yaml").write_text(text)
    return read_sweep_file("sweep.yaml", Overrides(**overrides), needs_program)


@pytest.mark.usefixtures("folder")
def test_a_good_file_is_a_sweep() -> None:
    file = read()
    assert file.source == "sweep.yaml"
    assert file.sweep.program == "train.py"
    assert file.data["method"] == "random"
    assert file.warnings == ()


@pytest.mark.usefixtures("folder")
def test_one_mistake_is_told_with_line_and_mend() -> None:
    with pytest.raises(ConfigError) as caught:
        read(GOOD.replace("max: 0.1", "max: 0.0001"))
    assert caught.value.what == ("sweep.yaml:6: min 0.001 and max 0.0001 are the wrong way round")
    assert caught.value.mend == "write min: 0.0001, max: 0.001"
    assert caught.value.exit_code == 2


@pytest.mark.usefixtures("folder")
def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    with pytest.raises(ConfigError) as caught:
        read("method: grid\nmetric: loss\nparameters:\n  x: {min: 0.0, max: 1.0}\nrun_cap: 0\n")
    first, *lines = caught.value.what.splitlines()
    assert first == "sweep.yaml has 3 mistakes:"
    assert [line.split(":")[1] for line in lines] == ["2", "4", "5"]
    assert all(line.startswith("  sweep.yaml:") and "; write" in line for line in lines)


@pytest.mark.usefixtures("folder")
def test_warnings_are_told_and_the_sweep_works() -> None:
    file = read(GOOD.replace("max: 0.1", "max: 0.1\n    distribution: log_uniform"))
    (warning,) = file.warnings
    assert warning.startswith("sweep.yaml:8: log_uniform is deprecated")


@pytest.mark.usefixtures("folder")
def test_numbers_with_an_exponent_are_numbers() -> None:
    file = read(GOOD.replace("0.001", "3e-3").replace("0.1", "1E-1"))
    assert file.data["parameters"]["lr"] == {"min": 0.003, "max": 0.1}


@pytest.mark.usefixtures("folder")
def test_what_is_no_yaml_is_told_with_its_place() -> None:
    with pytest.raises(ConfigError) as caught:
        read("method: grid\n\tparameters: 1\n")
    assert caught.value.what.startswith("sweep.yaml:2:1: a tab character")
    assert caught.value.mend == "indent with spaces; YAML allows no tabs there"


@pytest.mark.usefixtures("folder")
def test_a_file_that_is_not_there() -> None:
    with pytest.raises(NotFoundError, match=r"there is no file swep\.yaml") as caught:
        read_sweep_file("swep.yaml")
    assert caught.value.mend == "there is sweep.yaml"
    with pytest.raises(NotFoundError) as caught:
        read_sweep_file("nowhere/sweep.yaml")
    assert caught.value.mend == "name the file with the sweep, or write - for standard input"


@pytest.mark.usefixtures("folder")
def test_a_folder_is_no_file() -> None:
    with pytest.raises(ConfigError, match=r"\. cannot be read") as caught:
        read_sweep_file(".")
    assert caught.value.mend == "there is sweep.yaml"


@pytest.mark.usefixtures("folder")
def test_what_is_no_text() -> None:
    Path("sweep.yaml").write_bytes(b"method: grid\nname: \xff\n")
    with pytest.raises(ConfigError, match=r"sweep\.yaml:2: this is no UTF-8"):
        read()


@pytest.mark.usefixtures("folder")
def test_a_byte_order_mark_is_no_mistake() -> None:
    Path("sweep.yaml").write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert read().sweep.program == "train.py"


@pytest.mark.usefixtures("folder")
def test_a_program_is_asked_for_where_it_is_needed() -> None:
    text = GOOD.replace("program: train.py\n", "")
    assert read(text).sweep.program is None
    with pytest.raises(ConfigError, match=r"sweep\.yaml:1: the sweep says no program to run"):
        read(text, needs_program=True)
    assert read(text, needs_program=True, program="main.py").sweep.program == "main.py"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    assert read_sweep_file("-").source == "standard input"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"method: gird\n")))
    with pytest.raises(ConfigError, match="standard input:1: "):
        read_sweep_file("-")


@pytest.mark.usefixtures("folder")
def test_options_win_over_the_file() -> None:
    file = read(name="mine", project="p", entity="e", run_cap=3, program="x.py", seed=7)
    sweep = file.sweep
    assert (sweep.name, sweep.project, sweep.entity) == ("mine", "p", "e")
    assert (sweep.run_cap, sweep.program, sweep.options.seed) == (3, "x.py", 7)
    assert file.data["runyard"] == {"seed": 7}


@pytest.mark.usefixtures("folder")
def test_a_method_goes_where_it_belongs() -> None:
    assert read(method="tpe").data["runyard"] == {"method": "tpe"}
    assert read(method="bayes").data["method"] == "bayes"
    file = read(GOOD + "runyard: {method: tpe}\n", method="random")
    assert (file.sweep.method, file.data["runyard"]) == ("random", {})


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("text", "place", "value"),
    [
        ("parameters.lr.max=5e-1", ("lr",), {"min": 0.001, "max": 0.5}),
        ("parameters.lr=0.5", ("lr",), {"value": 0.5}),
        ("lr=[0.5, 0.6]", ("lr",), {"values": [0.5, 0.6]}),
        ("parameters.opt.beta=0.5", ("opt", "parameters", "beta"), {"value": 0.5}),
        ("parameters.model.width.values=[7]", ("model.width",), {"values": [7]}),
        ("parameters.new.values=[a, b]", ("new",), {"values": ["a", "b"]}),
        ("model.depth=[1, 2]", ("model.depth",), {"values": [1, 2]}),
        ("lr={value: 1}", ("lr",), {"value": 1}),
    ],
)
def test_any_place_can_be_set(text: str, place: tuple[str, ...], value: Any) -> None:
    found: Any = read(sets=(text,)).data["parameters"]
    for step in place:
        found = found[step]
    assert found == value


@pytest.mark.usefixtures("folder")
def test_the_top_and_our_key_can_be_set() -> None:
    file = read(sets=("run_cap=5", "runyard.seeds=3", "command=[python, x.py]"))
    assert file.sweep.run_cap == 5
    assert file.sweep.options.seeds == (0, 1, 2)
    assert file.sweep.command == ("python", "x.py")
    assert read(sets=("parameters.opt.beta.values.0=0.8",)).data["parameters"]["opt"] == {
        "parameters": {"beta": {"values": [0.8, 0.99]}}
    }


@pytest.mark.usefixtures("folder")
def test_a_mistake_of_the_command_line_is_not_the_file_s() -> None:
    with pytest.raises(ConfigError, match="--run-cap 0: run_cap is the number 0"):
        read(run_cap=0)
    with pytest.raises(ConfigError, match=r"--set lr\.max=x: max is the text"):
        read(sets=("lr.max=x",))
    with pytest.raises(ConfigError, match=r"sweep\.yaml:6 with --set lr\.max=0\.0: min 0\.001"):
        read(sets=("lr.max=0.0",))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("text", ["lr", "=3", "lr=[1, 2", "parameters.opt.beta.values.x=1"])
def test_what_cannot_be_set_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--set"):
        read(sets=(text,))
