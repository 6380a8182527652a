"""A shell's words for setting a variable survive whatever the value holds."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from runyard.actions.server.shell_variables import SHELLS, setting

HOSTILE = [
    "plain",
    "",
    "two words",
    "it's",
    'a "quoted" one',
    "$HOME `id` $(id)",
    "back\\slash\\",
    "a!b!!",
    "line\nline",
    "; rm -rf .",
    "é ∞",
    "~",
    "*?[]{}<>|&#",
]
_ANY_TEXT = some.text(some.characters(blacklist_categories=["Cs"], blacklist_characters="\0"))


def _evaluated(shell: str, line: str) -> str:
    script = f"{line}\nprintf '%s' \"$VALUE\""
    return subprocess.run(
        [shell, "-c", script], capture_output=True, check=True, encoding="utf-8"
    ).stdout


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_real_shell_gets_the_value(shell: str, value: str) -> None:
    assert _evaluated(shell, setting(shell, "VALUE", value)) == value


@settings(max_examples=30)
@given(_ANY_TEXT.filter(lambda text: "\r" not in text))
def test_a_real_shell_gets_any_value(value: str) -> None:
    assert _evaluated("sh", setting("sh", "VALUE", value)) == value


@pytest.mark.parametrize("shell", SHELLS)
def test_plain_values_look_plain(shell: str) -> None:
    said = setting(shell, "WANDB_BASE_URL", "http://127.0.0.1:20000")
    assert said in (
        "export WANDB_BASE_URL=http://127.0.0.1:20000",
        "set -gx WANDB_BASE_URL 'http://127.0.0.1:20000';",
        "setenv WANDB_BASE_URL http://127.0.0.1:20000;",
    )


# Read off the shells' own rules, since they are seldom installed: between fish's single quotes only
# \\ and \' mean something; between csh's, `!` and the end of a line do.
@pytest.mark.parametrize(
    ("shell", "value", "line"),
    [
        ("fish", "it's $HOME", "set -gx V 'it\\'s $HOME';"),
        ("fish", "a\\", "set -gx V 'a\\\\';"),
        ("fish", "line\nline", "set -gx V 'line\nline';"),
        ("csh", "it's $HOME", "setenv V 'it'\"'\"'s $HOME';"),
        ("tcsh", "a!b", "setenv V 'a\\!b';"),
        ("csh", "line\nline", "setenv V 'line\\\nline';"),
        ("csh", "", "setenv V '';"),
    ],
)
def test_the_words_of_other_shells(shell: str, value: str, line: str) -> None:
    assert setting(shell, "V", value) == line
