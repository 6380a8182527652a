"""The entry: finds the command, runs it, and turns every error into one message and a code."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runyard.errors import RunyardError

# `typing`, `argparse` and the rest are imported where they are needed: on a login node with a busy
# file system, every module that `--version` does not load is felt.


def main(argv: list[str] | None = None) -> int:
    """Run one command line; returns the exit code."""
    words = sys.argv[1:] if argv is None else argv
    if words in (["--version"], ["-V"]):
        from runyard import __version__

        print(f"runyard {__version__}")
        return 0
    from runyard.errors import RunyardError

    debug = bool(os.environ.get("RUNYARD_DEBUG"))
    try:
        if "_ARGCOMPLETE" in os.environ:
            from runyard.cli.completion import complete

            complete()
        return _dispatch(words)
    except RunyardError as error:
        if debug or _asks_debug(words):
            raise
        _flush()
        print(format_error(error), file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # Whoever read us has enough (`runyard runs | head`): leave without a word.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except KeyboardInterrupt:
        import signal

        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
        return 130
    except Exception as error:
        if debug or _asks_debug(words):
            raise
        _flush()
        print(
            f"runyard: this is a mistake in runyard itself: {type(error).__name__}: {error}\n"
            f"  try:  the same command with --debug shows where; please report it",
            file=sys.stderr,
        )
        return 70


def format_error(error: RunyardError) -> str:
    """What failed, the tool's own words, what to do next."""
    lines = [f"runyard: {error.what}"]
    if error.said:
        lines.append(f"  said: {error.said}")
    if error.mend:
        lines.append(f"  try:  {error.mend}")
    return "\n".join(lines)


def _dispatch(words: list[str]) -> int:
    from runyard.cli.catalog import COMMANDS
    from runyard.cli.parser import build_parser, load, unknown_command

    command = next((word for word in words if not word.startswith("-")), None)
    before = words[: words.index(command)] if command is not None else words
    if command == "help" and not before:
        return _dispatch([*words[1:], "--help"])
    for word in before:
        if word not in ("-h", "--help", "--version", "-V", "--debug"):
            raise unknown_command(word)
    if command is not None and command not in COMMANDS and "--help" not in before:
        raise unknown_command(command)
    parser, chosen = build_parser(command)
    if chosen is None or command is None or {"-h", "--help"} & set(before):
        parser.print_help()
        return 0 if before or not words else 2
    args, unknown = parser.parse_known_args(words)
    if unknown:
        chosen.refuse_unknown(unknown)
    if sys.stdout is not None and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # A terminal without UTF-8 gets "?", no traceback.
    code: int = load(command).run(args)
    sys.stdout.flush()
    return code


def _asks_debug(words: list[str]) -> bool:
    # What stands behind `--` belongs to the user's program.
    own = words[: words.index("--")] if "--" in words else words
    return "--debug" in own


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
