"""netrc, written so that every version of the wandb client finds its key.

Versions differ in whether they look under HOST:PORT or under HOST alone, so both are written; the
latter only if it is missing or was written by a wandb client or by us.
"""

from __future__ import annotations

import shlex
import urllib.parse
from collections.abc import Mapping

from runyard.client.keys import netloc, netrc_path
from runyard.errors import StateError
from runyard.home import write_whole

# What wandb clients write for a login name; other entries' are people's.
_LOGIN = "user"


def store_key(url: str, key: str, environ: Mapping[str, str]) -> list[str]:
    """Write the entries for a server; says under which names. Other entries stay as they are."""
    path = netrc_path(environ)
    machines = [netloc(url)]
    host = urllib.parse.urlsplit(url).hostname or ""
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if host and host != machines[0] and _login_of(text, host) in (None, _LOGIN):
            machines.append(host)
        for machine in machines:
            text = with_entry(text, machine, key)
        # Where it is a link into a folder of dotfiles, the link stays.
        write_whole(path.resolve(), text)
    except (OSError, UnicodeError) as error:
        raise StateError(
            f"cannot write {path}", said=error, mend="set NETRC to another file, or mend that one"
        ) from error
    return machines


def with_entry(text: str, machine: str, key: str) -> str:
    """The file's text with one entry for a machine, in place of what it had."""
    text = _without(text, machine)
    text += "" if not text or text.endswith("\n") else "\n"
    # Readers differ on quotes; names and keys need none.
    return f"{text}machine {machine}\n  login {_LOGIN}\n  password {key}\n"


def _without(text: str, machine: str) -> str:
    """The file without one machine's entry. Macros end with an empty line and are left alone."""
    remaining: list[str] = []
    dropping = in_macro = False
    for line in text.splitlines(keepends=True):
        words = _words(line)
        if in_macro:
            in_macro = bool(line.strip())
        elif words[:1] == ["macdef"]:
            in_macro, dropping = True, False
        elif words[:2] == ["machine", machine]:
            dropping = True
        elif words[:1] in (["machine"], ["default"]) or line.lstrip().startswith("#"):
            dropping = False
        if not dropping:
            remaining.append(line)
    return "".join(remaining)


def _login_of(text: str, machine: str) -> str | None:
    words = [word for line in text.splitlines() for word in _words(line)]
    for place in range(len(words) - 1):
        if words[place : place + 2] == ["machine", machine]:
            rest = words[place + 2 :]
            end = next(
                (n for n, word in enumerate(rest) if word in ("machine", "default")), len(rest)
            )
            entry = rest[:end]
            return entry[entry.index("login") + 1] if "login" in entry[:-1] else ""
    return None


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=False)
    except ValueError:
        return line.split()
