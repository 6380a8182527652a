"""Text into data that remembers its lines."""

from __future__ import annotations

import pytest

from runyard.reading.documents import DocumentError, read_document


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3e-3", 0.003),
        ("1E-5", 1e-5),
        ("1e5", 1e5),
        ("+1.e-3", 0.001),
        ("-2e-4", -2e-4),
        (".5e3", 500.0),
        ("1.0e-5", 1e-5),
        ("!!float 1e-5", 1e-5),
    ],
)
def test_numbers_with_an_exponent_are_numbers(text: str, value: float) -> None:
    read = read_document(f"a: {text}\nb: [{text}, x]\n").data
    assert read == {"a": value, "b": [value, "x"]}
    assert type(read["a"]) is float


@pytest.mark.parametrize("text", ["'3e-3'", '"1E-5"', "!!str 1e5"])
def test_a_quoted_number_is_text(text: str) -> None:
    assert isinstance(read_document(f"a: {text}").data["a"], str)


@pytest.mark.parametrize("text", ["1e", "e5", "1e5x", "0x1e5z", "3e-3-4", "7e12345", "2020-01-01"])
def test_what_is_no_number_stays_text(text: str) -> None:
    assert read_document(f"a: {text}").data == {"a": text}


def test_a_document_knows_its_lines() -> None:
    document = read_document(
        "method: grid\nparameters:\n  lr:\n    min: 1\n  bs: {values: [1,\n    2]}\n"
    )
    assert document.line_of(("parameters", "lr", "min")) == 4
    assert document.line_of(("parameters", "bs", "values", 1)) == 6
    assert document.line_of(("parameters", "lr", "max")) == 3, "the nearest that is there"
    assert document.line_of(()) == 1


def test_merged_keys_have_the_line_where_they_are_written() -> None:
    document = read_document("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\n")
    assert document.data["b"] == {"x": 1, "y": 3}
    assert document.line_of(("b", "x")) == 1
    assert document.line_of(("b", "y")) == 4


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, '"a" stands twice in one mapping, first in line 1'),
        ("a: [1, 2\nb: 3\n", 1, "is not closed"),
        ("a: !!python/object:os.system x", 1, "not allowed"),
        ("a: !!set {b, c}", 1, "not allowed"),
        ("&a [*a]", 1, "inside of what it repeats"),
        ("? [1]\n: 2", 1, "no key"),
        ("[" * 5000, 1, "nested deeper"),
        ("a: !!int abc", None, "cannot be read"),
        ("a: " + "9" * 6000, None, "cannot be read"),
        ("a: \x00", 1, "a character that is none"),
        ("\ud800", None, "characters"),
        ("a: 1\n---\nb: 2\n", 2, "another document"),
        ("x" * 4_000_001, None, "longer than"),
    ],
)
def test_what_is_no_document_is_refused_with_its_line(
    text: str, line: int | None, words: str
) -> None:
    with pytest.raises(DocumentError) as caught:
        read_document(text)
    assert caught.value.line == line
    assert words in caught.value.message


def test_aliases_of_aliases_do_not_grow_without_end() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(DocumentError, match="aliases written out"):
        read_document("\n".join(rows))


def test_json_is_read_as_well() -> None:
    assert read_document('{"a": [1, 2.5, null, true, "1e-3"]}').data == {
        "a": [1, 2.5, None, True, "1e-3"]
    }


def test_nothing_is_an_empty_document() -> None:
    document = read_document("# nothing\n")
    assert document.data is None
    assert document.line_of(("a",)) is None


def test_almost_a_million_digits_are_read_at_once() -> None:
    """The square of their number was hours, with every other thread waiting."""
    with pytest.raises(DocumentError, match="cannot be read"):
        read_document("a: " + "7" * 900_000)
    assert read_document("a: " + "7" * 900_000 + "x").data["a"].endswith("x")
    assert read_document("[3e-3, 1.e2, .5e1, 1_0.0e1]").data == [0.003, 100.0, 5.0, 100.0]
