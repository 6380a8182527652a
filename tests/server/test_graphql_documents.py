"""GraphQL without a schema: what is there is answered, what is not is null, nothing crashes it."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from runyard.server.wandb_api.fields.introspection import describe_type
from runyard.server.wandb_api.graphql import documents
from runyard.server.wandb_api.graphql.documents import execute
from runyard.server.wandb_api.graphql.request import Refusal

_asked: list[Mapping[str, Any]] = []


def _bird(arguments: Mapping[str, Any]) -> dict[str, Any]:
    _asked.append(arguments)
    return {
        "__typename": "Run",
        "name": arguments.get("name", "wren"),
        "nest": {"eggs": 3, "place": "hedge"},
        "songs": [{"title": "one"}, {"title": "two"}],
        "raw": {"any": ["json", 1]},
        "self": lambda _: _bird(arguments),
    }


async def _later(arguments: Mapping[str, Any]) -> str:
    await asyncio.sleep(0)
    return f"later {arguments.get('n')}"


_ROOTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "query": lambda name: {
        "operation": name,
        "bird": _bird,
        "later": _later,
        "none": None,
        "__type": lambda arguments: describe_type(arguments.get("name")),
    },
    "mutation": lambda _name: {"bird": _bird},
}


def run(text: str, variables: Mapping[str, Any] | None = None, name: str | None = None) -> Any:
    _asked.clear()
    return asyncio.run(execute(text, variables, _ROOTS, name))


def test_fields_aliases_and_lists() -> None:
    assert run(
        '{ a: bird { name } b: bird(name: "owl") { n: name songs { title } } none { x } }'
    ) == {
        "a": {"name": "wren"},
        "b": {"n": "owl", "songs": [{"title": "one"}, {"title": "two"}]},
        "none": None,
    }


def test_the_name_of_the_operation_is_known_to_the_fields() -> None:
    assert run("query Asked { operation }") == {"operation": "Asked"}
    assert run("{ operation }") == {"operation": ""}
    both = "query A { operation } query B { operation }"
    assert run(both, name="B") == {"operation": "B"}


def test_a_resolver_may_take_its_time() -> None:
    assert run("{ later(n: 4) }") == {"later": "later 4"}


def test_real_json_needs_no_selection_but_an_object_does() -> None:
    assert run("{ bird { raw } }") == {"bird": {"raw": {"any": ["json", 1]}}}
    with pytest.raises(Refusal, match="selection"):
        run("{ bird }")


def test_a_selection_of_something_that_has_no_fields_is_null() -> None:
    assert run("{ bird { name { first } } }") == {"bird": {"name": None}}


def test_fragments_apply_whatever_their_type_is_called() -> None:
    text = """
    query Q { bird { ...A ... on SomethingNew { nest { place } } } }
    fragment A on BirdOfNextYear { name }
    """
    assert run(text) == {"bird": {"name": "wren", "nest": {"place": "hedge"}}}


def test_between_run_and_user_the_type_decides() -> None:
    text = "{ bird { ... on User { username } ... on Run { name } ... on Run { __typename } } }"
    assert run(text) == {"bird": {"name": "wren", "__typename": "Run"}}


def test_the_same_field_in_two_fragments_is_merged() -> None:
    text = """
    { bird { ...A ...B } }
    fragment A on Run { nest { eggs } songs { title } }
    fragment B on Run { nest { place } songs { length } }
    """
    assert run(text)["bird"] == {
        "nest": {"eggs": 3, "place": "hedge"},
        "songs": [{"title": "one", "length": None}, {"title": "two", "length": None}],
    }


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, {"name": "wren"}),
        ({"yes": True}, {"nest": {"eggs": 3}, "name": "wren"}),
        ({"yes": True, "no": True}, {"nest": {"eggs": 3}}),
        ({"yes": False, "no": None}, {"name": "wren"}),
    ],
)
def test_include_and_skip(variables: dict[str, Any], wanted: dict[str, Any]) -> None:
    text = """
    query Q($yes: Boolean = false, $no: Boolean) {
      bird { nest @include(if: $yes) { eggs } name @skip(if: $no) }
    }
    """
    assert run(text, variables)["bird"] == wanted


def test_defaults_of_variables() -> None:
    text = "query Q($n: Int = 7) { later(n: $n) }"
    assert run(text) == {"later": "later 7"}
    assert run(text, {"n": 8}) == {"later": "later 8"}
    assert run(text, {"n": None}) == {"later": "later None"}


def test_a_variable_that_was_not_sent_is_not_there() -> None:
    run("query Q($a: String) { bird(x: {a: $a, b: [$a], c: 1}, name: $a) { name } }")
    assert _asked == [{"x": {"b": [None], "c": 1}}]


def test_which_operation() -> None:
    text = "query A { later(n: 1) } query B { later(n: 2) }"
    assert run(text, name="B") == {"later": "later 2"}
    for name in ("", None, "C"):  # 0.31 sends an empty name and means: the one that is there.
        assert run(text, name=name) == {"later": "later 1"}


def test_what_is_unknown_is_null_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    documents._seen_unknown.clear()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert run("{ bird { wings } tomorrow { x } }") == {
                "bird": {"wings": None},
                "tomorrow": None,
            }
    assert [record.getMessage().split(",")[0] for record in caplog.records] == [
        "a client asked for Query.bird.wings",
        "a client asked for Query.tomorrow",
    ]


def test_an_unknown_mutation_is_refused_by_its_name_before_any_is_carried_out() -> None:
    with pytest.raises(Refusal, match="'fly'"):
        run("mutation { bird { name } fly { far } }")
    assert not _asked


def test_introspection_is_never_null() -> None:
    text = """
    query P($t: String!) {
      __type(name: $t) { name fields { name args { name } } inputFields { name } }
    }
    """
    for name in ("Query", "Mutation", "ServerInfo", "ServerSettings", "NoSuchType"):
        found = run(text, {"t": name})["__type"]
        assert found["name"] == name
        assert found["fields"] is not None
        assert found["inputFields"] == []
    mutation = run(text, {"t": "Mutation"})["__type"]["fields"]
    assert "createRunFiles" in [field["name"] for field in mutation]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Syntax"),
        ("", "Syntax"),
        ("fragment A on B { c }", "no operation"),
        ("{ bird { ...Nowhere } }", "Nowhere"),
        ("subscription S { bird { name } }", "subscription"),
        ("{" * 10_000 + "}" * 10_000, "Syntax"),
        ("{ a" * 10_000 + "}" * 10_000, "deep"),
        ("{ bird(x: " + "[" * 10_000 + "]" * 10_000 + ") { name } }", "deep"),
        ("{ bird { " + "self { " * 5_000 + "name" + "}" * 5_002, "deep"),
        ("#" * 300_000 + "\n{ later }", "longer"),
    ],
    ids=lambda value: value[:20],
)
def test_what_cannot_be_is_refused(text: str, said: str) -> None:
    with pytest.raises(Refusal, match=said):
        run(text)


def test_fragments_in_circles_come_to_an_end() -> None:
    text = """
    { bird { ...A } }
    fragment A on Run { name ...B }
    fragment B on Run { nest { eggs } ...A }
    """
    assert run(text) == {"bird": {"name": "wren", "nest": {"eggs": 3}}}
    with pytest.raises(Refusal, match="deep"):
        run("{ bird { ...A } } fragment A on Run { self { ...A } }")


def test_fragments_that_double_and_double_come_to_an_end() -> None:
    doubling = " ".join(f"fragment F{n} on Run {{ ...F{n + 1} ...F{n + 1} }}" for n in range(60))
    assert run(f"{{ bird {{ ...F0 }} }} {doubling} fragment F60 on Run {{ name }}") == {
        "bird": {"name": "wren"}
    }
    doubling = " ".join(
        f"fragment F{n} on Run {{ a: self {{ ...F{n + 1} }} b: self {{ ...F{n + 1} }} }}"
        for n in range(40)
    )
    with pytest.raises(Refusal, match="fields"):
        run(f"{{ bird {{ ...F0 }} }} {doubling} fragment F40 on Run {{ name }}")


def test_one_long_field_under_many_names_is_refused() -> None:
    few = " ".join(f"a{number}: later" for number in range(50))
    assert len(run("{ " + few + " }")) == 50
    with pytest.raises(Refusal, match="under more than 50 names"):
        run("{ " + few + " one_more: later }")


def test_an_answer_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_LARGEST_ANSWER", 1_000)
    assert run('{ bird(name: "' + "a" * 900 + '") { name } }')
    for text in ("name", "raw songs { title } a: name b: name"):
        with pytest.raises(Refusal, match="larger than"):
            run('{ bird(name: "' + "a" * 999 + '") { name nest { eggs place } ' + text + " } }")


def test_the_server_starts_without_the_parser_and_loads_it_with_the_first_document() -> None:
    code = "import sys, runyard.server.serve; sys.exit('graphql' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
