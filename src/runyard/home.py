"""The state folder: where runyard stores everything, and who may read it.

`RUNYARD_HOME` names it; the default is `~/.runyard`. There can be several; each has its own
server, key and database.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from runyard.errors import StateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

# Where runyard itself is imported from; jobs and agents put it first on their path.
SOURCE = str(Path(__file__).resolve().parents[1])

# What a server listens to that nodes are to reach, where its address is not named.
LISTEN_TO_CLUSTER = "cluster"
MARKER = "RUNYARD_STATE"
_MARKER_TEXT = "This folder is runyard's: runs, metrics, files and the server's key.\n"


@dataclass(frozen=True)
class Home:
    """The state folder and the places in it."""

    path: Path

    @property
    def database(self) -> Path:
        return self.path / "runyard.db"

    @property
    def files(self) -> Path:
        """What runs uploaded."""
        return self.path / "files"

    @property
    def blobs(self) -> Path:
        """The contents of artifacts."""
        return self.path / "blobs"

    @property
    def exports(self) -> Path:
        """Histories as files, until the client that asked for one has it."""
        return self.path / "exports"

    @property
    def runs(self) -> Path:
        """One folder for each run that was started here, with the files of its wandb client."""
        return self.path / "runs"

    @property
    def spool(self) -> Path:
        """Consoles and ends of attempts that the server does not have yet."""
        return self.path / "spool"

    @property
    def discovery(self) -> Path:
        """Where the server is and the key to it; see `Discovery`."""
        return self.path / "server.json"

    @property
    def login(self) -> Path:
        """The address of somebody else's server, where the user has logged in there."""
        return self.path / "login"

    @property
    def server_jobs(self) -> Path:
        """The jobs of a server that runs as Slurm jobs; see `client/server_jobs.py`."""
        return self.path / "server-jobs.json"

    @property
    def server_lock(self) -> Path:
        """Held by the server as long as it lives."""
        return self.path / "server.lock"

    @property
    def start_lock(self) -> Path:
        """Held by the one command that is starting the server."""
        return self.path / "start.lock"

    @property
    def port_holder(self) -> Path:
        """The random part of the port holder's name; see `port_holder.py`."""
        return self.path / "port-holder"

    @property
    def log(self) -> Path:
        return self.path / "server.log"

    @property
    def crash_log(self) -> Path:
        """What the server process printed outside of its log, such as the last lines of a crash."""
        return self.path / "server.out"

    @property
    def tls(self) -> Path:
        """The private authority, the server's certificate, and what stock clients trust."""
        return self.path / "tls"

    @property
    def secret(self) -> Path:
        """Signs the upload addresses that the server hands out."""
        return self.path / "secret"


@dataclass(frozen=True)
class Discovery:
    """How commands and jobs find the server. It outlives the server, so a restart keeps port and
    key."""

    url: str
    key: str
    pid: int
    hostname: str
    listen: str
    port: int
    version: str
    started_at: float
    running: bool
    node_key: str = ""
    """The first key of agents on nodes. It is for runs only and cannot administer."""
    authority: str = ""
    """The certificate (PEM) that clients trust; empty if the server uses plain HTTP."""
    tls_cert: str = ""
    """The user's own certificate, its key, and its authority, as file names."""
    tls_key: str = ""
    tls_ca: str = ""
    public_url: str = ""
    """The address that people use, if there is a proxy in front of the server."""
    proxies: str = ""
    """Addresses of trusted proxies, separated by commas."""


# Types of the fields of `Discovery`, by their annotations.
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "str": str, "int": int, "float": (int, float), "bool": bool,
}  # fmt: skip


def locate(environ: Mapping[str, str] = os.environ) -> Home:
    """The state folder that the environment names."""
    named = environ.get("RUNYARD_HOME") or "~/.runyard"
    try:
        path = Path(named).expanduser()
    except RuntimeError as error:
        raise StateError(
            f"cannot tell where the state folder {named} is",
            said=error,
            mend="set RUNYARD_HOME to a folder's whole path",
        ) from error
    return Home(Path(os.path.abspath(path)))  # Symlinks stay as the user wrote them.


def prepare(home: Home) -> None:
    """Create the state folder if it does not exist; refuse one that is not safely the user's."""
    path = home.path
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.stat()
    except (FileExistsError, NotADirectoryError) as error:
        raise StateError(
            f"the state folder {path} is not a folder",
            said=error.strerror,
            mend="move that file away, or set RUNYARD_HOME to another folder",
        ) from error
    except OSError as error:
        raise _unusable(path, error) from error
    if status.st_uid != os.geteuid():
        raise StateError(
            f"the state folder {path} belongs to {_user_name(status.st_uid)}, not to you",
            mend="set RUNYARD_HOME to a folder of your own",
        )
    marker = path / MARKER
    try:
        if not marker.exists():
            _refuse_foreign(path, marker)
            write_whole(marker, _MARKER_TEXT)
        if stat.S_IMODE(status.st_mode) != 0o700:
            path.chmod(0o700)
        for folder in (home.files, home.blobs, home.runs, home.spool):
            folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _unusable(path, error) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise _unusable(path, PermissionError(13, "Permission denied"))


@contextlib.contextmanager
def using(home: Home) -> Iterator[None]:
    """Turn errors of the operating system in the state folder into errors that say what to do."""
    try:
        yield
    except OSError as error:
        raise _unusable(home.path, error) from error


def _refuse_foreign(path: Path, marker: Path) -> None:
    # The marker is written first. So if it is missing, the folder can hold only the half-written
    # marker of another command.
    foreign = [entry.name for entry in path.iterdir() if MARKER not in entry.name]
    if foreign and not marker.exists():
        raise StateError(
            f"{path} holds files that are not runyard's: {', '.join(sorted(foreign)[:3])} ...",
            mend="set RUNYARD_HOME to a folder that is new or empty",
        )


def read_discovery(home: Home) -> Discovery | None:
    """The discovery file, or None if no server was ever started (or the file is damaged)."""
    try:
        content = home.discovery.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unusable(home.path, error) from error
    try:
        record = json.loads(content)
        # A newer version may have more fields than this one, an older version fewer.
        known = [field.name for field in fields(Discovery) if field.name in record]
        discovery = Discovery(**{name: record[name] for name in known})
    except (ValueError, TypeError, KeyError):
        return None
    return discovery if _is_sound(discovery) else None


def _is_sound(discovery: Discovery) -> bool:
    return all(
        isinstance(getattr(discovery, field.name), _TYPES[str(field.type)])
        for field in fields(Discovery)
    )


def write_discovery(home: Home, discovery: Discovery) -> None:
    write_whole(home.discovery, json.dumps(asdict(discovery), indent=1) + "\n")


def mark_stopped(home: Home) -> None:
    """Write into the discovery file that the server ended in an orderly way."""
    discovery = read_discovery(home)
    if discovery is not None:
        write_discovery(home, replace(discovery, running=False))


def write_whole(path: Path, text: str) -> None:
    """Write a private file completely or not at all: a temporary file, fsync, rename."""
    # mkstemp creates it with mode 0600, whatever the umask is.
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(aside).replace(path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def written_aside(path: Path) -> Iterator[IO[bytes]]:
    """A temporary file for new content, which is renamed to `path` at the end, so `path` is never
    half written. A file that it replaces gives it its mode."""
    # Others may be able to write in the folder: a name that nobody can guess, and never a link.
    aside = path.with_name(f".{path.name}.{os.urandom(8).hex()}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(aside, flags, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            _keep_mode(path, handle)
            yield file
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def _keep_mode(path: Path, handle: int) -> None:
    with contextlib.suppress(OSError):
        before = path.lstat()
        if stat.S_ISREG(before.st_mode) and before.st_uid == os.geteuid():
            os.fchmod(handle, stat.S_IMODE(before.st_mode) & 0o777)


def _unusable(path: Path, error: OSError) -> StateError:
    mends = {
        28: "free some space there, or set RUNYARD_HOME to a folder on another disk",
        122: "you are over your quota: free some space, or set RUNYARD_HOME to another disk",
        30: "that file system is read-only here: set RUNYARD_HOME to a folder you can write",
    }
    mend = mends.get(error.errno or 0, "set RUNYARD_HOME to a folder that you can write")
    return StateError(f"cannot use the state folder {path}", said=error.strerror, mend=mend)


def _user_name(uid: int) -> str:
    import pwd

    with contextlib.suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return f"user {uid}"
