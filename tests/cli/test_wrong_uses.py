"""What people type wrongly, and what they are told: the place and the mend."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import cast
from unittest import mock

import pytest

from runyard.actions.run import one_line
from runyard.actions.submitting import submission as submitting
from runyard.cli.main import main
from runyard.cli.output import show
from runyard.errors import RunyardError, format_error, of_system
from runyard.report.export import write_table
from runyard.schedulers import commands
from runyard.schedulers.slurm.commands import ask
from runyard.shapes.sweeps import Sweep


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("run -name x -- python train.py -name y", "--name"),
        ("sweep -dry-run sweep.yaml", "--dry-run"),
        ("runs -project=x", "--project"),
    ],
)
def test_a_long_option_with_one_dash(
    words: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    assert f"did you mean {meant}?" in capsys.readouterr().err


def test_a_programs_own_options_may_have_one_dash(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["repeat", "--seeds", "x", "java", "-name", "y"]) == 2
    assert "did you mean" not in capsys.readouterr().err


def test_what_is_missing_is_told_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare"]) == 2
    assert "try:  runyard compare a1b2c3d4 e5f6a7b8   (`" in capsys.readouterr().err


def test_a_time_says_its_unit(capsys: pytest.CaptureFixture[str]) -> None:
    """A bare 90 is minutes to Slurm and seconds to others."""
    assert main(["submit", "--time", "90", "--dry-run", "--", "true"]) == 2
    assert "write 90s, 90m or 90h" in capsys.readouterr().err


def test_a_program_that_is_not_there_is_guessed_by_its_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.yaml").write_text(
        "program: trian.py\nmethod: grid\nparameters: {lr: {values: [1]}}\n"
    )
    assert main(["sweep", "train.yaml"]) == 1
    assert "did you mean" not in capsys.readouterr().err
    Path("train.py").touch()
    assert main(["sweep", "train.yaml"]) == 1
    assert "did you mean train.py?" in capsys.readouterr().err


def test_what_the_system_refuses_has_a_place_and_a_mend() -> None:
    error = of_system(OSError(errno.ENOSPC, "No space left on device", "/home/x"))
    assert format_error(error).splitlines() == [
        "runyard: the operating system refused something at /home/x",
        "  said: No space left on device",
        "  try:  free some space on the disk that it writes to",
    ]
    assert "--debug" in format_error(of_system(OSError(errno.EIO, "Input/output error")))


def test_a_table_into_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RunyardError, match=r"there is no folder .*new folder to write"):
        write_table([], tmp_path / "new folder" / "runs.csv", "csv")


def test_an_old_python_is_told_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 18))
    assert main(["runs"]) == 1
    assert "Python 3.10 or newer is needed" in capsys.readouterr().err


def test_a_name_stands_in_one_line() -> None:
    assert one_line("a\nb\t c") == "a b c"
    assert one_line("größe ✓ 漢字") == "größe ✓ 漢字"


def test_whoever_waits_for_slurm_hears_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    assert ask(["true"], notice=said.append).is_good
    assert said == []
    monkeypatch.setattr(commands, "_SLOW_SECONDS", 0.0)
    assert ask(["sleep", "0.5"], notice=said.append).is_good
    assert said == ["waiting for Slurm's `sleep` to answer"]


def test_ctrl_c_while_slurm_is_asked_leaves_no_sweep_that_nobody_works_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    api, submission, sweep = mock.Mock(), mock.Mock(), {"key": 3, "id": "a1b2c3d4"}
    submission.send.side_effect = KeyboardInterrupt
    monkeypatch.setattr(submitting, "open_server", lambda *_, **__: api)
    with pytest.raises(KeyboardInterrupt):
        submitting.submit_or_undo(submission, cast(Sweep, sweep), show, is_new=True)
    api.sweeps.set_state.assert_called_once_with(3, "canceled")
    assert "sweep a1b2c3d4 is canceled" in capsys.readouterr().err
    with pytest.raises(KeyboardInterrupt):
        submitting.submit_or_undo(submission, cast(Sweep, sweep), show, is_new=False)
    api.sweeps.set_state.assert_called_once()
    assert "sweep a1b2c3d4 is as it was" in capsys.readouterr().err
