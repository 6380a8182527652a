"""The score of W&B's own tests: read from pytest's report, told, and written down."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

REPORT = """<testsuites><testsuite>
<testcase classname="tests.system_tests.test_core.test_a" name="test_one" />
<testcase classname="tests.system_tests.test_core.test_a" name="test_two[x]">
  <failure message="AssertionError: assert 1 == 2&#10;  +1&#10;  -2&#10;and more">...</failure>
</testcase>
<testcase classname="tests.system_tests.test_core.test_a" name="test_three"><skipped /></testcase>
<testcase classname="tests.system_tests.test_core.test_b" name="test_four">
  <error message="failed on teardown">...</error>
</testcase>
</testsuite></testsuites>"""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = Path(__file__).parents[2] / "scripts" / "wandb_system_tests.py"
    spec = importlib.util.spec_from_file_location("wandb_system_tests", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Dataclasses look their module up.
    spec.loader.exec_module(module)
    return module


def test_a_report_becomes_a_score_with_reasons(script: ModuleType, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    scores = script.read_report(report)
    assert script.describe(scores) == [
        "test_core.test_a                            1 of 2, 1 skipped",
        "    test_two[x]: AssertionError: assert 1 == 2 +1 -2",
        "test_core.test_b                            0 of 1, 0 skipped",
        "    test_four: failed on teardown",
        "together                                    1 of 3",
    ]


def test_a_table_by_group_with_what_is_not_built_apart(script: ModuleType, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    scores = script.read_report(report)
    script.write_result(tmp_path / "results", "test_core", scores)
    script.write_result(tmp_path / "results", "test_launch", scores)
    drawn = script.table("0.99.0", script.read_results(tmp_path / "results"))
    assert "release 0.99.0: **1 of 3** pass outside of what is not built" in drawn
    assert "2 of 6 in all" in drawn
    assert "| `test_core` | 1 | 3 | 1 |" in drawn
    assert "- `test_core.test_b::test_four`: failed on teardown" in drawn
    assert "- `test_launch`: W&B Launch" in drawn


def test_a_failure_that_is_understood_is_told_in_our_words(
    script: ModuleType, tmp_path: Path
) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT.replace("test_four", "test_syncs_resumed_run"))
    (reason,) = script.read_report(report)["test_core.test_b"].failed.values()
    assert "what is stored in the end" in reason


def test_a_checkout_between_releases_is_refused(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "wandb").mkdir()
    source = tmp_path / "wandb" / "__init__.py"
    source.write_text('__version__ = "0.99.1.dev1"\n')
    with pytest.raises(SystemExit, match="no release"):
        script.read_version(tmp_path)
    source.write_text('__version__ = "0.99.0"\n')
    assert script.read_version(tmp_path) == "0.99.0"
