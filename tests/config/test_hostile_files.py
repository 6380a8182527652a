"""Whatever stands in runyard.yaml: an answer, or an error that a person can read. Never a crash."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runyard.clusters.load import SHIPPED, load_profile
from runyard.config.check import check
from runyard.config.project_file import read_project
from runyard.config.project_shape import ProjectFile
from runyard.errors import RunyardError
from runyard.reading.kinds import Number, Unfit
from runyard.reading.records import Section, kind_of_setting, settings_of

GENERIC = load_profile("generic", folders=[SHIPPED])
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**9), 10**20),
    st.floats(allow_nan=True),
    st.text(max_size=12),
    st.sampled_from(
        [
            "16G",
            "2h",
            "${HOME}",
            "$NO_SUCH",
            "~",
            "a b",
            "'",
            '"',
            "\n",
            "*",
            "auto",
            "h\u00e9",
            "0",
        ]
    ),
)
VALUES = st.recursive(
    ODD,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=5,
)


def _files(record: type[Any], depth: int) -> st.SearchStrategy[Any]:
    """Files that have the right keys, mostly, and odd values in them."""
    optional: dict[Any, st.SearchStrategy[Any]] = {}
    for name, one in settings_of(record).items():
        kind = kind_of_setting(one)
        if isinstance(kind, Section) and depth:
            optional[name] = st.one_of(_files(kind.record, depth - 1), ODD)
        else:
            optional[name] = VALUES
    return st.fixed_dictionaries({}, optional=optional)


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=_files(ProjectFile, 2))
def test_any_file_is_read_or_refused_in_words(tmp_path: Path, data: Any) -> None:
    (tmp_path / "runyard.yaml").write_text(yaml.safe_dump(data, allow_unicode=True))
    with contextlib.suppress(RunyardError):
        request = read_project(tmp_path, profile=GENERIC, environ={"HOME": "/home/me"})
        checked = check(request, environ={"HOME": "/home/me"})
        assert all(one.what and one.mend for one in checked.refusals)


@pytest.mark.parametrize(
    "text",
    ["\x00", "a: &a [*a]", "? [1, 2]\n: 3", "!!python/object:os.system {}", "1: 2", "a: b: c", "%"],
)
def test_what_is_no_document_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "runyard.yaml").write_text(text)
    with pytest.raises(RunyardError, match=r"runyard\.yaml"):
        read_project(tmp_path, profile=GENERIC)


def test_a_folder_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "runyard.yaml").write_bytes(b"name: \xff\xfe\n")
    with pytest.raises(RunyardError, match="no UTF-8"):
        read_project(tmp_path, profile=GENERIC)


def test_a_command_that_no_shell_would_run_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "runyard.yaml").write_text(f"command: python {'a' * 200_000}\n")
    with pytest.raises(RunyardError, match=r"runyard\.yaml:1: .*more than 100,000 characters"):
        read_project(tmp_path, profile=GENERIC)


def test_an_amount_of_thousands_of_digits_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runyard.yaml").write_text(f"resources: {{time: {'7' * 4_000}h}}\n")
    with pytest.raises(RunyardError, match=r"runyard\.yaml:1"):
        read_project(tmp_path, profile=GENERIC)


def test_a_number_that_no_float_holds_is_refused() -> None:
    for value in (10**400, -(10**400), float("inf"), float("nan")):
        with pytest.raises(Unfit, match="a number is wanted"):
            Number().read(value)
    assert Number().read(10**300) == 1e300
    with pytest.raises(Unfit, match="negative"):
        Number().read(-1)


def test_a_file_that_no_person_wrote_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "runyard.yaml").write_text("".join(f"k{number}: 1\n" for number in range(50_000)))
    with pytest.raises(RunyardError, match="larger than 256 KiB"):
        read_project(tmp_path, profile=GENERIC)
