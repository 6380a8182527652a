"""The score of W&B's own tests: read from pytest's report, told, and written down."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.script_modules import load_script

REPORT = """<testsuites><testsuite>
<testcase classname="tests.system_tests.test_core.test_a" name="test_one" />
<testcase file="tests/system_tests/test_core/test_a.py"
  classname="tests.system_tests.test_core.test_a" name="test_two[x]">
  <failure message="AssertionError: assert 1 == 2&#10;  +1&#10;  -2&#10;and more">...</failure>
</testcase>
<testcase classname="tests.system_tests.test_core.test_a" name="test_three"><skipped /></testcase>
<testcase classname="tests.system_tests.test_core.test_b" name="test_four">
  <error message="failed on teardown">...</error>
</testcase>
</testsuite></testsuites>"""


@pytest.fixture
def script() -> ModuleType:
    return load_script("wandb_system_tests")


@pytest.fixture
def scores() -> ModuleType:
    return load_script("wandb_scores")


def test_a_report_becomes_a_score_with_reasons(scores: ModuleType, tmp_path: Path) -> None:
    assert scores.describe(scores.read_report(_report(tmp_path))) == [
        "test_core.test_a                            1 of 2, 1 skipped",
        "    test_two[x]: AssertionError: assert 1 == 2 +1 -2",
        "test_core.test_b                            0 of 1, 0 skipped",
        "    test_four: failed on teardown",
        "together                                    1 of 3",
    ]


def test_a_table_by_group_with_what_is_not_built_apart(scores: ModuleType, tmp_path: Path) -> None:
    report = scores.read_report(_report(tmp_path))
    scores.write_result(tmp_path / "results", "test_core", report)
    scores.write_result(tmp_path / "results", "test_launch", report)
    drawn = scores.table("0.99.0", "0.99.1.dev1", scores.read_results(tmp_path / "results"))
    assert "tests of 0.99.1.dev1 with the client's release 0.99.0: **1 of 3** pass" in drawn
    assert "2 of 6 in all" in drawn
    assert "| `test_core` | 1 | 3 | 1 |" in drawn
    assert "- 1: failed on teardown (`test_core.test_b`: `test_four`)" in drawn
    assert "- `test_launch`: W&B Launch" in drawn


def test_tests_that_fail_for_one_reason_share_a_note(scores: ModuleType) -> None:
    many = scores.Score(failed={f"test_{number}[a]": "no" for number in range(5)})
    few = scores.Score(failed={"test_a[1]": "no", "test_a[2]": "no", "test_b": "never"})
    drawn = scores.table("0.99.0", "0.99.0", {"test_core": {"many": many, "few": few}})
    assert drawn.splitlines()[-2:] == [
        "- 7: no (`many`: 5 tests; `few`: `test_a`)",
        "- 1: never (`few`: `test_b`)",
    ]


def test_a_failure_that_is_understood_is_told_in_our_words(
    scores: ModuleType, tmp_path: Path
) -> None:
    report = _report(tmp_path, REPORT.replace("test_four", "test_client_sharp"))
    score = scores.read_report(report)["test_core.test_b"]
    assert "C# program" in score.reason("test_client_sharp")


@pytest.mark.parametrize(
    "words",
    [
        "AttributeError: module 'wandb' has no attribute 'beta'",
        "AttributeError: &lt;module 'wandb.cli.cli' from '/a/cli.py'&gt; has no attribute '_api'",
        "ImportError: cannot import name 'internal' from 'wandb.apis' (/a/apis/__init__.py)",
        "ModuleNotFoundError: No module named 'wandb.sdk.internal.internal_api'",
    ],
)
def test_what_this_release_lacks_is_told_by_the_words_of_the_failure(
    scores: ModuleType, tmp_path: Path, words: str
) -> None:
    report = _report(
        tmp_path, REPORT.replace('failed on teardown">', f'failed on teardown">E   {words}')
    )
    score = scores.read_report(report)["test_core.test_b"]
    assert "not in this release" in score.reason("test_four")
    score.failed["test_client_sharp"] = words.replace("&lt;", "<").replace("&gt;", ">")
    assert "not in this release" in score.reason("test_client_sharp")


def test_what_is_not_understood_gets_a_second_try(scores: ModuleType, tmp_path: Path) -> None:
    first = _report(tmp_path, REPORT.replace("test_four", "test_client_sharp"))
    assert scores.unexplained(first) == ["test_core/test_a.py::test_two[x]"]
    score = scores.read_report(first)
    second = _report(
        tmp_path, '<testcase file="tests/system_tests/test_core/test_a.py" name="test_two[x]" '
        'classname="tests.system_tests.test_core.test_a" />',
    )  # fmt: skip
    scores.count_second_try(score, second)
    assert scores.total(score) == (2, 3, 1)
    assert score["test_core.test_a"].failed == {}


def _report(folder: Path, text: str = REPORT) -> Path:
    path = folder / "report.xml"
    path.write_text(text)
    return path


def test_a_checkout_between_releases_is_refused(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "wandb").mkdir()
    source = tmp_path / "wandb" / "__init__.py"
    source.write_text('__version__ = "0.99.1.dev1"\n')
    with pytest.raises(SystemExit, match="no release"):
        script.read_version(tmp_path)
    source.write_text('__version__ = "0.99.0"\n')
    assert script.read_version(tmp_path) == "0.99.0"
