"""Whose word a file is: what other users of the machine can write is not trusted.

Trusted are the user and root. Root can do everything anyway.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

# As many links in a row as Linux follows, and far more folders than a path has.
_MOST_STEPS = 4096


def is_ours_alone(path: Path) -> bool:
    """Whether only the user and root can change what a path leads to: each folder and each link on
    the way belongs to them, and nobody else can write there."""
    steps = list(reversed(path.absolute().parts))
    here = Path("/")
    for _ in range(_MOST_STEPS):
        if not steps:
            return True
        step = steps.pop()
        if step == "..":
            here = here.parent
            continue
        place = here / step
        try:
            status = place.lstat()
            if not is_of_user(status):
                return False
            if stat.S_ISLNK(status.st_mode):
                steps += reversed(place.readlink().parts)
                continue
        except OSError:
            return False
        if _others_can_write(status):
            return False
        here = place
    return False


def find_marked(folder: Path, mark: str) -> Iterator[Path]:
    """The folders that hold `mark`: this one, and those above it, the nearest first.

    In a folder above, anybody could leave us commands and keys if all may write there, as in /tmp.
    Such folders are passed over, and those with a mark of somebody else.
    """
    for place in (folder, *folder.parents):
        try:
            status = (place / mark).lstat()
            if place == folder or (is_of_user(status) and not is_open_to_all(place)):
                yield place
        except OSError:
            continue


def is_open_to_all(folder: Path) -> bool:
    return bool(folder.stat().st_mode & stat.S_IWOTH)


def is_of_user(status: os.stat_result) -> bool:
    return status.st_uid in (os.geteuid(), 0)


def _others_can_write(status: os.stat_result) -> bool:
    """Also whether they can put something else in the place of what is there."""
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return False  # As in /tmp: each file there can be replaced by its owner only.
    if status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and not _is_private_group(status.st_gid)


def _is_private_group(number: int) -> bool:
    """Whether a group is the user's own: many systems give each user one, and a umask of 002."""
    import grp
    import pwd

    if number == 0:
        return True
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(number)
    except KeyError:
        return False
    return (group.gr_gid, group.gr_name) == (user.pw_gid, user.pw_name) and set(group.gr_mem) <= {
        user.pw_name
    }
