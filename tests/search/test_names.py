"""Names of trials: short, unique, and good as a folder's name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from runyard.search.names import LONGEST, abbreviate, placeholders, resolve, shorten, trial_name
from runyard.search.sweep import read_sweep

HOSTILE: list[Any] = [
    "../../etc/passwd",
    "/",
    ".",
    "..",
    "",
    "   ",
    "a b\nc\td",
    "x" * 1000,
    "日本語",
    "-rf",
    "$(reboot)",
    "a\x00b",
    "Ünïcode",
    "\ud800",
    None,
    True,
    False,
    0,
    -0.0,
    float("nan"),
    float("-inf"),
    10**400,
    -1e-300,
    [],
    {},
    {"a": {"b": [1, {"c": None}]}},
    [["deep"] * 9] * 9,
]
values = st.recursive(
    st.one_of(
        st.sampled_from(HOSTILE),
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=30),
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
names = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_.-]{0,30}(/[A-Za-z_][A-Za-z0-9_.-]{0,10}){0,2}\Z")
settings = st.dictionaries(names, values, max_size=6)


def free(_: str) -> bool:
    return False


def test_learning_rate_and_batch_size_in_short_form() -> None:
    assert trial_name({"lr": 3e-3, "batch_size": 64}, free) == "lr3em3_bs64"
    assert trial_name({"learning_rate": 1e-5, "bs": 16}, free) == "lr1em5_bs16"


@pytest.mark.parametrize(
    ("value", "short"),
    [
        (0.003, "3em3"),
        (1e-5, "1em5"),
        (0.25, "25em2"),
        (0.00123456, "123em5"),
        (64, "64"),
        (64.0, "64"),
        (100_000, "100000"),
        (1e5, "1e5"),
        (15e9, "15e9"),
        (-0.5, "m5em1"),
        (-3, "m3"),
        (True, "true"),
        (None, "none"),
        ("AdamW", "adamw"),
        ("google/bert-base", "bert-base"),
        ([500, 500], "500-500"),
        (float("inf"), "inf"),
    ],
)
def test_values_in_a_few_letters(value: Any, short: str) -> None:
    assert shorten(value) == short


@pytest.mark.parametrize(
    ("swept", "name"),
    [
        ({"optimizer": "adam"}, "opt-adam"),
        ({"beta1": 0.9}, "b1-9em1"),
        ({"weight_decay": 0.1, "dropout": 0.5}, "wd1em1_dro5em1"),
        ({"opt/lr": 0.1, "net/lr": 0.2}, "oplr1em1_nelr2em1"),
        ({"numLayers": 3}, "nl3"),
        ({}, "trial"),
    ],
)
def test_any_sweep_is_named_from_its_parameters(swept: dict[str, Any], name: str) -> None:
    assert trial_name(swept, free) == name


def test_values_that_look_alike_get_more_digits() -> None:
    taken: set[str] = set()
    for value in (0.123456, 0.123457, 0.1234561, 0.1, 0.1):
        taken.add(trial_name({"lr": value}, taken.__contains__))
    assert taken == {"lr123em3", "lr12346em5", "lr1234561em7", "lr1em1", "lr1em1_2"}


@given(settings)
def test_a_name_is_a_good_folder_and_a_good_word(swept: dict[str, Any]) -> None:
    name = trial_name(swept, free)
    assert re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name)
    assert len(name) <= LONGEST
    assert Path(name).name == name


@given(settings, st.text(max_size=60))
def test_a_template_s_name_is_safe_as_well(swept: dict[str, Any], template: str) -> None:
    name = trial_name(swept, free, template + "".join(f"{{{key}}}" for key in swept))
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.=+-]*", name)
    assert len(name) <= LONGEST
    assert ".." not in (name, name[:2])


@examples(max_examples=40)
@given(st.lists(settings, max_size=4))
def test_no_two_trials_have_one_name(several: list[dict[str, Any]]) -> None:
    taken: set[str] = set()
    for swept in several * 3:
        name = trial_name(swept, taken.__contains__)
        assert name.lower() not in taken, "not even where case is ignored"
        taken.add(name)


def test_a_thousand_trials_with_equal_values_are_numbered_quickly() -> None:
    taken: set[str] = set()
    asked = 0

    def is_taken(name: str) -> bool:
        nonlocal asked
        asked += 1
        return name in taken

    for _ in range(1000):
        taken.add(trial_name({"lr": 0.1}, is_taken))
    assert taken == {"lr1em1", *(f"lr1em1_{number}" for number in range(2, 1001))}
    assert asked < 30_000


@given(st.lists(names, unique=True, max_size=20))
def test_short_names_are_distinct_and_do_not_depend_on_the_order(given_names: list[str]) -> None:
    short = abbreviate(given_names)
    assert len(set(short.values())) == len(given_names)
    assert short == abbreviate(given_names[::-1])


def test_ten_thousand_letters_make_a_short_name() -> None:
    assert trial_name({"prompt": "long " * 2000}, free) == "pro-long-long-long-l"
    many = {f"parameter_{letter}": "word " * 9 for letter in "abcdefghijkl"}
    assert len(trial_name(many, free)) == LONGEST
    other = {**many, "parameter_l": "other"}
    assert trial_name(many, free) != trial_name(other, free), "what is cut off still counts"


def test_a_template_names_parameters_with_dots_or_their_last_part() -> None:
    flat = ["opt/lr", "net/width", "bs", "a/x", "b/x"]
    assert placeholders("lr{opt.lr}_{bs}") == ["opt.lr", "bs"]
    assert [resolve(word, flat) for word in ("opt.lr", "opt/lr", "width", "bs", "x", "y")] == [
        "opt/lr",
        "opt/lr",
        "net/width",
        "bs",
        None,
        None,
    ]
    swept = {"opt/lr": 0.003, "bs": 64}
    assert trial_name(swept, free, "lr{opt.lr}_bs{bs}") == "lr3em3_bs64"
    assert trial_name(swept, free, "LR = {lr}") == "LR-=-3em3"


def test_a_name_follows_the_order_of_the_file() -> None:
    sweep, _ = read_sweep(
        {
            "method": "grid",
            "parameters": {
                "lr": {"values": [3e-3, 1e-3]},
                "batch_size": {"values": [64, 32]},
                "epochs": {"value": 9},
            },
        }
    )
    assert sweep is not None
    swept = sweep.space.swept({"lr": 3e-3, "batch_size": 64, "epochs": 9, "more": 1})
    assert trial_name(swept, free) == "lr3em3_bs64"
