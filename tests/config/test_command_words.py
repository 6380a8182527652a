"""The words of `command:` reach the program as they were typed, and what stays unfilled is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runyard.clusters.load import load_profile
from runyard.config.overrides import Overrides
from runyard.config.project_file import read_project
from runyard.config.sweep_file import SweepFile, read_sweep_file
from runyard.node.attempt.command_line import expand
from runyard.server.sweeps.serving.creation import read_file

SWEEP = """\
program: train.py
method: grid
parameters:
  learning_rate: {{values: [1e-5]}}
command: [{words}]
"""
TYPED = ["1e5", "1E-5", "1.10", "010", "0x1f", "1_000", "yes", "off", "True", "2:00:00", ".5", "1."]
TYPED += ["2020-01-01", "+3", "007", ".inf", "5"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(words: str, environ: dict[str, str] | None = None, **overrides: Any) -> SweepFile:
    Path("sweep.yaml").write_text(SWEEP.format(words=words))
    return read_sweep_file("sweep.yaml", Overrides(**overrides), environ=environ or {})


def words_of(command: Any) -> list[str]:
    return expand(command, "train.py", {}, {}, str)


@pytest.mark.parametrize("word", TYPED)
def test_a_word_arrives_as_it_was_typed(word: str) -> None:
    file = read(f"python, {word}")
    assert words_of(file.sweep.command) == ["python", word]
    assert words_of(read_file(file.text).sweep.command) == ["python", word], "by the server"
    assert words_of(read_file(dict(file.data)).sweep.command) == ["python", word], "sent as data"


def test_a_word_that_an_option_sets_arrives_as_it_was_typed() -> None:
    file = read("python, x", sets=("command=[python, 1e5]", "command.0=010"))
    assert words_of(file.sweep.command) == ["010", "1e5"]


def test_values_of_parameters_are_numbers_all_the_same() -> None:
    assert read("python, 1e5").data["parameters"]["learning_rate"]["values"] == [1e-5]


@pytest.mark.parametrize("word", TYPED)
def test_a_word_in_runyard_yaml_arrives_as_it_was_typed(word: str) -> None:
    text = f"command: [python, {word}]\nrehearse: {{small: {{add: [--lr, {word}]}}}}\n"
    Path("runyard.yaml").write_text(f"{text}clusters: {{plai: {{command: [sh, {word}]}}}}\n")
    request = read_project(Path.cwd(), profile=load_profile("generic"))
    assert request.command == ("python", word)
    assert request.rehearse["small"].add == ("--lr", word)
    assert read_project(Path.cwd(), profile=load_profile("plai")).command == ("sh", word)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("python, '--out=${OUTDIR}/x'",
         'sweep.yaml:5: "${OUTDIR}" in "--out=${OUTDIR}/x" is no parameter, and no variable that '
         "is set here: it stays as written; set OUTDIR where the trials run"),
        ("python, '--lr=${learningrate}'",
         'sweep.yaml:5: "${learningrate}" in "--lr=${learningrate}" is no parameter, and no '
         "variable that is set here: it stays as written; did you mean ${learning_rate}?"),
        ("bash, -c, 'python ${program} ${args}'",
         'sweep.yaml:5: "${program}" in "python ${program} ${args}" stays as written: it is filled '
         "in only as a word of its own; write the words of the command one by one"),
        ("python, 'x=${envvar:home}'",
         'sweep.yaml:5: "${envvar:home}" in "x=${envvar:home}" stays as written; write '
         "${envvar:HOME}: W&B's agent knows capitals, digits, _"),
    ],
)  # fmt: skip
def test_a_name_inside_a_word_that_nothing_fills_is_said(words: str, said: str) -> None:
    assert read(words).warnings[0] == said


@pytest.mark.parametrize(
    "words",
    [
        "python, '--lr=${learning_rate}'",
        "python, '--out=${envvar:OUTDIR}/x'",
        "python, '--out=${HOME}/x'",
        "python, '--out=${SLURM_TMPDIR}/${SLURM_JOB_ID}'",
        "python, '--out=${RUNYARD_CHECKPOINT_DIR}'",
        "bash, -c, 'for x in a; do echo ${x} ${OUTDIR}; done'",
        "python, '--price=$5 {a} ${}'",
    ],
)
def test_what_is_filled_in_or_left_to_a_shell_is_not_spoken_of(words: str) -> None:
    assert read(words, environ={"HOME": "/home/ada"}).warnings == ()
