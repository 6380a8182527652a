"""A runyard.yaml for a project, by looking at it and at the cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.actions.events import Notice, Notify
from runyard.clusters.load import load_profile, profile_folders, profile_names
from runyard.clusters.place import recognise, this_place
from runyard.clusters.profile import Profile
from runyard.config import project_look
from runyard.config.check import check
from runyard.config.project_draft import project_draft
from runyard.config.project_file import read_project
from runyard.config.project_look import Look
from runyard.config.project_text import FILE_NAME, find_project_file, read_project_text
from runyard.config.request import Resources
from runyard.config.sweep_file import read_sweep_file
from runyard.errors import ConfigError, StateError, UsageError
from runyard.home import write_whole
from runyard.reading.kinds import Unfit
from runyard.reading.problems import closest
from runyard.reading.records import kind_of_setting, settings_of
from runyard.schedulers.slurm.script_reader import SCRIPTS

Ask = Callable[[str, str], str]
"""Takes a question and what an empty answer means; gives the answer."""


@dataclass(frozen=True)
class InitRequest:
    """`cluster`: None for the one that this is; `replaces`: a file may be there already."""

    folder: Path
    cluster: str | None = None
    replaces: bool = False


@dataclass(frozen=True)
class ProjectDraft:
    """The file's text, and what was found, with where each thing comes from."""

    file: Path
    text: str
    look: Look
    profile: Profile

    def to_json(self) -> dict[str, Any]:
        return {
            "file": str(self.file),
            "cluster": self.profile.name,
            "settings": self.look.settings,
            "reasons": self.look.reasons,
            "notes": self.look.notes,
            "text": self.text,
        }


def draft_project(request: InitRequest, ask: Ask | None, notify: Notify) -> ProjectDraft:
    """Look, and ask what is not clear, where somebody can be asked; writes nothing."""
    folder = request.folder
    file = folder / FILE_NAME
    if file.exists() and not request.replaces:
        raise UsageError(
            f"there is a {FILE_NAME} here already",
            mend=f"edit it; `runyard init --dry-run` shows a new one, --force writes over {file}",
        )
    here = recognise(this_place())
    name = request.cluster or here.name
    profile = load_profile(name)
    look = project_look.look(folder, SCRIPTS)
    if ask is not None:
        profile = _ask(look, profile, ask, notify, is_sure=name != "generic")
    if profile.name != here.name:
        look.take("cluster", profile.name, "you" if request.cluster else "your answer")
    text = project_draft(look.settings, look.reasons, profile)
    _tell_look(look, profile, folder, notify)
    return ProjectDraft(file, text, look, profile)


def write_project(draft: ProjectDraft, notify: Notify) -> None:
    """Write the file, and tell what the cluster would say to it."""
    _write(draft.file, draft.text)
    _tell_objections(draft.file.parent, notify)


def _tell_look(look: Look, profile: Profile, folder: Path, notify: Notify) -> None:
    for path, reason in look.reasons.items():
        if path in ("command", "sweep", "environment.kind"):
            notify(Notice(f"{path}: {look.settings[path]} (from {reason})"))
    for note in look.notes:
        notify(Notice(note))
    if look.others:
        notify(Notice(f"the program could also be {', '.join(look.others)}"))
    above = find_project_file(folder.parent)
    if above is not None:
        notify(Notice(f"there is {above} as well; here, the nearer file counts"))
    if profile.identity.retired:
        notify(Notice(profile.identity.retired))


def _write(file: Path, text: str) -> None:
    try:
        write_whole(file, text)
        file.chmod(0o644)  # Nothing in it is secret, and others of the project read it.
    except OSError as error:
        raise StateError(f"cannot write {file}", said=error.strerror) from None
    read_project_text(file)  # What we write, we can read; else it is told here and now.


def _tell_objections(folder: Path, notify: Notify) -> None:
    """What the cluster would say to it, as it is."""
    try:
        checked = check(read_project(folder))
        if checked.request.sweep_file is not None:
            read_sweep_file(folder / checked.request.sweep_file, needs_program=True)
    except ConfigError as error:
        notify(Notice(f"{error.what}{f'; {error.mend}' if error.mend else ''}"))
        return
    for note in checked.notes:
        notify(Notice(note))
    for refusal in checked.refusals:
        notify(Notice(f"{checked.request.profile.name}: {refusal.what}; {refusal.mend}"))


def _ask(look: Look, profile: Profile, ask: Ask, notify: Notify, *, is_sure: bool) -> Profile:
    """What looking could not tell. Enter takes what stands in brackets."""
    command = look.settings.get("command")
    if "command_file" not in look.settings:
        answer = ask("the command of one run", command or "")
        if answer and answer != command:
            look.settings["command"], look.reasons["command"] = answer, "your answer"
    if not is_sure:
        profile = _ask_cluster(profile, ask, notify)
    for option, reason in profile.submission.mandatory.items():
        path = f"resources.{option}"
        known = settings_of(Resources)
        if path in look.settings or option in profile.submission.defaults or option not in known:
            continue
        while True:
            answer = ask(f"{option} ({reason})", "")
            if not answer:
                break
            try:
                kind_of_setting(known[option]).parse(answer)
            except Unfit as error:
                notify(Notice(f"{error.wanted}; {error.mend}"))
                continue
            look.take(path, answer, "your answer")
            break
    return profile


def _ask_cluster(profile: Profile, ask: Ask, notify: Notify) -> Profile:
    names = profile_names(profile_folders())
    while True:
        answer = ask(f"the cluster ({', '.join(names)})", profile.name)
        if answer in names:
            return load_profile(answer)
        near = closest(answer, names)
        notify(Notice(f"there is no profile {answer}{f'; did you mean {near}?' if near else ''}"))
