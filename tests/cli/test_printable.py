"""Control characters in what others have written do nothing to a reader's terminal."""

from __future__ import annotations

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.home import Home
from runyard.printable import json_escaped, plain_console, printable
from runyard.server.serve import LineFormatter
from tests.conftest import run_runyard
from tests.node.terminals import RUNYARD, Terminal

# It clears the screen, retitles the window, writes to the clipboard, and turns the line around.
HOSTILE = "nice\x1b[2J\x1b]0;owned\x07\x1b]52;c;cm0gLXJm\x07\x9b31m\u202egnp.exe"
OBEYED = ("\x1b[2J", "\x1b]", "\x07", "\x9b", "\u202e")


@given(st.text())
def test_nothing_that_is_printable_is_changed_and_nothing_else_is_left(text: str) -> None:
    shown = printable(text)
    assert not any(letter in shown for letter in ("\x1b", "\x07", "\r", "\x9b", "\u202e"))
    if text.isprintable():
        assert shown == text


@given(st.text(st.characters(codec="utf-8")))
def test_escaped_json_is_the_same_json(text: str) -> None:
    written = json_escaped(json.dumps({"name": text}, ensure_ascii=False))
    assert json.loads(written) == {"name": text}
    assert "\x9b" not in written


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("\x1b[32mgreen\x1b[0m\n", "green\n"),
        ("1%\r2%\r\nnext", "1%\n2%\nnext"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Bplain", "plain"),
        ("cut \x1b[3", "cut \\x1b[3"),
        ("tab\tstays é", "tab\tstays é"),
    ],
)
def test_a_console_as_plain_lines(printed: str, shown: str) -> None:
    assert plain_console(printed) == shown


def test_nobody_forges_a_line_of_the_servers_log() -> None:
    record = logging.LogRecord(
        "server", logging.WARNING, "", 0, "an alert %s", ("a\n2026 ERROR it burns\x1b[2J",), None
    )
    line = LineFormatter("%(levelname)s %(message)s").format(record)
    assert line == "WARNING an alert a\\n2026 ERROR it burns\\x1b[2J"


@pytest.fixture(scope="module")
def hostile_run(module_home: Home) -> str:
    """A run in an entity that others write to as well, hostile in every text; returns its id."""
    api: Api = ensure_server(module_home).api
    run = api.create_run(
        {
            "id": "hostile1",
            "entity": "lab",
            "project": "birds",
            "name": HOSTILE,
            "command": ["python", HOSTILE],
            "host": "host",
            "folder": f"/home/{HOSTILE}",
            "notes": HOSTILE,
            "tags": [HOSTILE],
            "group": HOSTILE,
        }
    )
    attempt = api.begin_attempt(run, "host", 1, "token")
    api.send_console(run, attempt, 0, f"{HOSTILE}\r\x1b[32m2%\n".encode())
    api.end_attempt(run, attempt, 1, 5.0)
    return "hostile1"


@pytest.mark.live
@pytest.mark.parametrize(
    "words",
    [["runs"], ["show", "hostile1"], ["status", "hostile1"], ["logs", "hostile1"]],
    ids=" ".join,
)
def test_what_others_wrote_is_text_in_every_command(hostile_run: str, words: list[str]) -> None:
    show_on_terminal(words)
    done = run_runyard(*words)
    assert not any(code in done.stdout + done.stderr for code in OBEYED)


@pytest.mark.live
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_table_is_text_on_a_terminal(hostile_run: str, form: str) -> None:
    show_on_terminal(["export", hostile_run, "--what", "summary", "--format", form])


def show_on_terminal(words: list[str]) -> None:
    with Terminal([*RUNYARD, *words], columns=200) as terminal:
        terminal.wait()
        shown = terminal.seen.decode()
    assert "nice" in shown
    assert not any(code in shown for code in OBEYED), shown


@pytest.mark.live
def test_logs_of_others_are_raw_where_that_is_asked_for(hostile_run: str) -> None:
    assert run_runyard("logs", hostile_run).stdout.endswith("\n2%\n")
    # The pipe of the test's own text mode turns a carriage return into a line's end.
    assert run_runyard("logs", hostile_run, "--raw").stdout == f"{HOSTILE}\n\x1b[32m2%\n"


@pytest.mark.live
def test_programs_that_read_us_get_what_was_written(hostile_run: str) -> None:
    [run] = json.loads(run_runyard("runs", "--json").stdout)
    assert run["name"] == HOSTILE
    assert HOSTILE in run_runyard("export", hostile_run, "--what", "summary").stdout
