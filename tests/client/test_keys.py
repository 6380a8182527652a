"""Where a key is looked for, and where it is put."""

from __future__ import annotations

import netrc
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.client import netrc_file
from runyard.client.keys import find_key, save_project_key
from runyard.errors import NotFoundError, StateError, UsageError

URL = "http://yard.example:8123"
A, B, C, D = ("a" * 40, "b" * 40, "c" * 40, "d" * 40)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    (tmp_path / "project" / ".git").mkdir(parents=True)
    return {"HOME": str(tmp_path / "home")}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path / "project"


def test_the_first_place_that_holds_a_key_wins(
    environ: dict[str, str], project: Path, tmp_path: Path
) -> None:
    netrc_file.store_key(URL, D, environ)
    assert find_key(URL, environ, project).key == D
    save_project_key(project, "work_account", C)
    (project / "deep").mkdir()
    assert find_key(URL, environ, project / "deep").key == C
    (tmp_path / "home" / "wandb_credentials.txt").write_text(f"\n  {B}\n")
    assert find_key(URL, environ, project).key == B
    assert find_key(URL, {**environ, "WANDB_API_KEY": A}, project).key == A


def test_a_key_that_anybody_could_have_left_above_is_not_taken(
    environ: dict[str, str], project: Path
) -> None:
    (project / "mine").mkdir()
    save_project_key(project, "theirs", C)
    assert find_key(URL, environ, project / "mine").key == C
    project.chmod(0o1777)
    with pytest.raises(NotFoundError):
        find_key(URL, environ, project / "mine")
    assert save_project_key(project / "mine", "work", D).parent == project / "mine"


def test_an_empty_place_is_as_good_as_none(
    environ: dict[str, str], project: Path, tmp_path: Path
) -> None:
    (tmp_path / "home" / "wandb_credentials.txt").write_text(" \n")
    (project / "keys.json").write_text('{"work_account": " "}')
    (tmp_path / "home" / ".netrc").write_text(
        'machine yard.example:8123\n login user\n password ""\n'
    )
    environ["WANDB_API_KEY"] = ""
    with pytest.raises(NotFoundError, match="there is no key for http://yard") as told:
        find_key(URL, environ, project)
    assert "wandb_credentials.txt" in str(told.value.said)
    assert "runyard login" in str(told.value.mend)


def test_several_keys_of_a_project_have_names(environ: dict[str, str], project: Path) -> None:
    save_project_key(project, "work_account", A)
    path = save_project_key(project, "home_account", B)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(UsageError, match="home_account, work_account"):
        find_key(URL, environ, project)
    assert find_key(URL, environ, project, "work_account").key == A
    assert find_key(URL, {**environ, "RUNYARD_ACCOUNT": "home_account"}, project).key == B
    # A name that was given is not overruled, nor quietly passed over.
    assert find_key(URL, {**environ, "WANDB_API_KEY": C}, project, "work_account").key == A
    with pytest.raises(NotFoundError, match="no key 'other'"):
        find_key(URL, environ, project, "other")


def test_netrc_is_asked_for_the_server_in_use(environ: dict[str, str], project: Path) -> None:
    netrc_file.store_key("https://api.wandb.ai", A, environ)
    netrc_file.store_key(URL, B, environ)
    assert find_key("https://api.wandb.ai", environ, project).key == A
    assert find_key(URL, environ, project).key == B
    with pytest.raises(NotFoundError):
        find_key("https://elsewhere.example", environ, project)


def test_a_file_that_others_can_read_is_told(environ: dict[str, str], project: Path) -> None:
    path = save_project_key(project, "work_account", A)
    assert find_key(URL, environ, project).warning is None
    path.chmod(0o644)
    assert "chmod 600" in str(find_key(URL, environ, project).warning)


@pytest.mark.parametrize("text", ["[]", "{", '{"a": 1}'])
def test_a_damaged_key_file_is_named(environ: dict[str, str], project: Path, text: str) -> None:
    (project / "keys.json").write_text(text)
    with pytest.raises(StateError, match=r"keys\.json"):
        find_key(URL, environ, project)


OTHERS = """# mine
machine git.example login ada password secret
macdef init
machine inside a macro

machine old.example
  login ada
  password other
# last words
default login anonymous password x
"""


def test_other_entries_stay_as_they_are(environ: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "home" / ".netrc"
    path.write_text(OTHERS)
    path.chmod(0o644)
    netrc_file.store_key(URL, A, environ)
    netrc_file.store_key(URL, B, environ)
    text = path.read_text()
    assert text.startswith(OTHERS)
    assert A not in text
    assert text.count(B) == 2  # Under HOST:PORT and HOST: versions of the client differ.
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    entries = netrc.netrc(str(path))
    for machine in ("yard.example:8123", "yard.example"):
        assert entries.hosts[machine] == ("user", "", B) or entries.hosts[machine][2] == B
    assert entries.hosts["old.example"][2] == "other"


def test_somebodys_own_entry_for_the_host_is_not_taken(
    environ: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "home" / ".netrc"
    path.write_text("machine yard.example login ada password secret\n")
    assert netrc_file.store_key(URL, A, environ) == ["yard.example:8123"]
    assert netrc.netrc(str(path)).hosts["yard.example"][2] == "secret"


def test_a_link_to_dotfiles_stays_a_link(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles" / "netrc").write_text("")
    path = tmp_path / "home" / ".netrc"
    path.symlink_to(tmp_path / "dotfiles" / "netrc")
    netrc_file.store_key(URL, A, environ)
    assert path.is_symlink()
    assert A in path.read_text()


@given(st.lists(st.sampled_from(["a.example", "b.example:80", "c.example"]), max_size=6))
def test_each_machine_has_one_entry(machines: list[str]) -> None:
    text = ""
    for number, machine in enumerate(machines):
        text = netrc_file.with_entry(text, machine, f"{number:040}")
    for machine in set(machines):
        assert text.splitlines().count(f"machine {machine}") == 1
        last = len(machines) - 1 - machines[::-1].index(machine)
        assert f"{last:040}" in text
