"""The pages for single clusters: what they say of a profile is the profile's, and what they show of
a submission is what would be sent."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from runyard.cli.main import main
from runyard.clusters.load import SHIPPED, load_profile, profile_names
from runyard.clusters.profile import Profile
from tests.script_modules import load_script
from tests.tutorials.tutorial import blocks, compare

FACTS = load_script("facts_table")
PAGES = Path(__file__).parents[2] / "docs" / "clusters"
# The profile that a page's commands are typed with.
TYPED_ON = {
    "alliance": "narval", "perlmutter": "perlmutter", "claix-2023": "claix-2023",
    "jsc": "juwels-booster", "aws-parallelcluster": "aws-parallelcluster", "plai": "plai",
    "another-slurm": "generic",
}  # fmt: skip


def shipped(name: str) -> Profile:
    return load_profile(name, folders=[SHIPPED])


@pytest.mark.parametrize("name", TYPED_ON)
def test_a_page_says_what_the_profiles_say(name: str) -> None:
    page = (PAGES / f"{name}.md").read_text()
    assert "<!-- facts: " in page
    assert page == FACTS.with_facts(page, shipped), (
        "write it anew: python scripts/settings_pages.py"
    )


def test_every_profile_that_is_in_use_has_a_page() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == set(TYPED_ON)
    told = "".join(path.read_text() for path in PAGES.glob("*.md"))
    for name in profile_names([SHIPPED]):
        if not shipped(name).identity.retired and name != "alliance":
            assert f"`{name}`" in told


def test_facts_on_which_clusters_agree_are_told_once() -> None:
    told = FACTS.facts_tables([shipped("fir"), shipped("narval")])
    common, own = told.split("\n\n")
    assert "| scratch | `${SCRATCH}` |" in common
    assert "| internet on nodes | yes | no; module `httpproxy`" in own
    assert "| jobs | - | 1000 at work" in own


@pytest.mark.parametrize("name", TYPED_ON)
def test_a_page_shows_what_would_be_sent(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "scratch" / "birds"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    for variable in ("SCRATCH", "HPCWORK"):
        monkeypatch.setenv(variable, str(folder.parent))
    monkeypatch.setenv("RUNYARD_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("RUNYARD_CLUSTER", TYPED_ON[name])
    monkeypatch.setattr(sys, "argv", ["runyard"])
    (folder / "train.py").write_text("print(1)\n")
    (folder / "requirements.txt").write_text("wandb\n")
    said, typed = "", 0
    for block in blocks((PAGES / f"{name}.md").read_text()):
        place = f"{name}.md, line {block.line}"
        if block.title is not None:
            (folder / block.title).write_text(block.text)
        elif block.kind == "bash":
            words = shlex.split(block.text)
            assert words[0] == "runyard", place
            assert "--dry-run" in words, place
            assert main(words[1:]) == 0, f"{place}: {capfd.readouterr().err}"
            said, typed = "".join(reversed(capfd.readouterr())), typed + 1
        elif block.kind == "text":
            compare(block.text, said, place)
    assert typed > 0


def test_trillium_wants_the_state_folder_on_scratch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "scratch" / "birds"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SCRATCH", str(folder.parent))
    monkeypatch.setenv("RUNYARD_HOME", str(tmp_path / "home" / ".runyard"))
    words = ["submit", "--cluster", "trillium", "-a", "def-prof", "--dry-run", "--", "true"]
    assert main(words) != 0
    said = capsys.readouterr().err
    assert f"jobs on trillium cannot write in {tmp_path}/home" in said
    assert f"export RUNYARD_HOME={folder.parent}/.runyard" in said
