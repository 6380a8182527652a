"""The key for a server that is not our own, looked up where people keep it.

In this order: `WANDB_API_KEY`; the file `~/wandb_credentials.txt`; a project's `keys.json`, by
name; netrc, under the server in use. The first that holds one wins.
"""

from __future__ import annotations

import json
import netrc
import os
import stat
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from runyard.errors import NotFoundError, StateError, UsageError
from runyard.file_trust import find_marked
from runyard.home import write_whole

CREDENTIALS = "wandb_credentials.txt"
PROJECT_KEYS = "keys.json"
ACCOUNT = "RUNYARD_ACCOUNT"


@dataclass(frozen=True)
class FoundKey:
    key: str
    source: str
    warning: str | None = None


def find_key(
    url: str, environ: Mapping[str, str], folder: Path, account: str | None = None
) -> FoundKey:
    """The key for the server at `url`; never an empty one."""
    account = account or environ.get(ACCOUNT) or None
    # A name that was given means the project's file, whatever else there is.
    key = _of_project(folder, account) if account else None
    key = (
        key
        or _of_environment(environ)
        or _of_credentials(_home(environ) / CREDENTIALS)
        or _of_project(folder, None)
        or _of_netrc(url, environ)
    )
    if key is not None:
        return key
    raise NotFoundError(
        f"there is no key for {url}",
        said=f"looked at WANDB_API_KEY, ~/{CREDENTIALS}, {project_keys(folder)} and "
        f"{netrc_path(environ)} (for {netloc(url)})",
        mend=f"`runyard login --host {url}` stores one; or put it into ~/{CREDENTIALS}",
    )


def netloc(url: str) -> str:
    """A server's name as netrc has it: with the port, without a user."""
    return urllib.parse.urlsplit(url).netloc.rpartition("@")[2]


def netrc_path(environ: Mapping[str, str]) -> Path:
    named = environ.get("NETRC")
    if named:
        return Path(named).expanduser()
    home = _home(environ)
    return (
        home / "_netrc"
        if (home / "_netrc").exists() and not (home / ".netrc").exists()
        else (home / ".netrc")
    )


def netrc_key(path: Path, machine: str) -> str | None:
    """The password under exactly that name; netrc's `default` is for another kind of server."""
    try:
        entry = netrc.netrc(str(path)).hosts.get(machine)
    except FileNotFoundError:
        return None
    except (netrc.NetrcParseError, OSError, UnicodeError) as error:
        raise StateError(
            f"cannot read {path}", said=error, mend=f"mend that file, or move it away: {path}"
        ) from error
    # Python 3.10's netrc leaves quotes where they are; no key has any.
    return (entry[2] or "").strip().strip('"') or None if entry else None


def project_keys(folder: Path) -> Path:
    """Where a project keeps its keys: beside its `.git`, or in the folder itself."""
    return next(find_marked(folder, ".git"), folder) / PROJECT_KEYS


def save_project_key(folder: Path, account: str, key: str) -> Path:
    """Keep a key under a name in the project, readable by its owner only."""
    path = project_keys(folder)
    write_whole(path, json.dumps({**_read_project(path), account: key}, indent=1) + "\n")
    return path


def _of_environment(environ: Mapping[str, str]) -> FoundKey | None:
    key = environ.get("WANDB_API_KEY", "").strip()
    return FoundKey(key, "WANDB_API_KEY") if key else None


def _of_credentials(path: Path) -> FoundKey | None:
    try:
        lines = path.read_text(encoding="utf-8").split()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeError) as error:
        raise StateError(
            f"cannot read {path}", said=error, mend="put the key alone into it"
        ) from error
    if len(lines) > 1:
        raise StateError(f"{path} holds more than a key", mend="put the key alone into it")
    return FoundKey(lines[0], str(path), _warning(path)) if lines else None


def _of_project(folder: Path, account: str | None) -> FoundKey | None:
    path = project_keys(folder)
    keys = _read_project(path)
    if account is None and len(keys) > 1:
        raise UsageError(
            f"{path} holds {len(keys)} keys: {', '.join(sorted(keys))}",
            mend=f"name one: --key NAME, or {ACCOUNT}=NAME",
        )
    name = account or next(iter(keys), None)
    if name is None:
        return None
    if name not in keys:
        known = ", ".join(sorted(keys)) or "none"
        raise NotFoundError(f"{path} holds no key {name!r}", said=f"it holds: {known}")
    return FoundKey(keys[name], f"{path} ({name})", _warning(path))


def _read_project(path: Path) -> dict[str, str]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise StateError(
            f"cannot read {path}", said=error, mend="mend it, or move it away"
        ) from error
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content.values()):
        raise StateError(f"{path} does not hold keys by name", mend='{"work_account": "the key"}')
    return {name: key.strip() for name, key in content.items() if key.strip()}


def _of_netrc(url: str, environ: Mapping[str, str]) -> FoundKey | None:
    path = netrc_path(environ)
    # Some client versions write the name without its port.
    for machine in dict.fromkeys((netloc(url), urllib.parse.urlsplit(url).hostname or "")):
        key = netrc_key(path, machine)
        if key:
            return FoundKey(key, f"{path} ({machine})", _warning(path))
    return None


def _warning(path: Path) -> str | None:
    mode = stat.S_IMODE(path.stat().st_mode)
    return f"others can read {path}: `chmod 600 {path}`" if mode & 0o077 else None


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or os.path.expanduser("~"))
