"""The entry: finds the command, runs it, and turns every error into one message and a code."""

from __future__ import annotations

import os
import sys

from runyard.errors import RunyardError, format_error, of_system

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

# `typing`, `argparse` and the rest are imported where they are needed: on a login node with a busy
# file system, every module that `--version` does not load is felt.

_ASK_HELP, _ASK_VERSION = ("-h", "--help"), ("-V", "--version")


def main(argv: list[str] | None = None) -> int:
    """Run one command line; returns the exit code."""
    if sys.version_info < (3, 10):  # noqa: UP036 - installed by hand, past pip's own check.
        python = (
            f"{sys.version.split()[0]}: {sys.executable}\n  try:  install runyard with a newer one"
        )
        return _fail(f"runyard: Python 3.10 or newer is needed, and this is {python}", 1)
    words = sys.argv[1:] if argv is None else argv
    debug = _asks_debug(words)
    _open_missing_streams()
    try:
        if "_ARGCOMPLETE" in os.environ:
            from runyard.cli.completion import complete

            complete()
        args = _parse(words)
        code = 0
        if args is not None:
            debug = bool(os.environ.get("RUNYARD_DEBUG")) or "debug" in args
            code = _load_and_run(args)
        sys.stdout.flush()
        return code
    except RunyardError as error:
        if debug:
            raise
        return _fail(format_error(error), error.exit_code)
    except BrokenPipeError:
        # Whoever read us has enough (`runyard runs | head`): leave without a word.
        _drop_output()
        return 141
    except KeyboardInterrupt:
        import signal

        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
        return 130
    except SystemExit:  # argparse has shown a command's help.
        _flush()
        raise
    except OSError as error:
        if debug:
            raise
        return _fail(format_error(of_system(error)), 1)
    except Exception as error:
        if debug:
            raise
        lacking = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
        if lacking and lacking.split(".")[0] != "runyard":
            lack = RunyardError(
                f"this Python lacks {lacking}, which runyard needs: {sys.executable}",
                mend="the `runyard` of the environment that it was installed in, or install it "
                "into this one",
            )
            return _fail(format_error(lack), 1)
        what = f"this is a mistake in runyard itself: {type(error).__name__}: {error}"
        mend = "the same command with --debug shows where; please report it"
        return _fail(format_error(RunyardError(what, mend=mend)), 70)


def _parse(words: list[str]) -> argparse.Namespace | None:
    """The command and its options; None where all that was asked has been printed."""
    from runyard.cli.catalog import COMMANDS, command_of

    first = next((word for word in words if not word.startswith("-")), None)
    before = words[: words.index(first)] if first is not None else words
    if first == "help" and not before:
        return _parse([*words[1:], "--help"])
    known = (*_ASK_HELP, *_ASK_VERSION, "--debug")
    wrong = next((word for word in before if word not in known), None)
    if wrong is None and any(word in _ASK_VERSION for word in before):
        from runyard.version import __version__

        print(f"runyard {__version__}")
        return None
    if wrong is None and (first is None or any(word in _ASK_HELP for word in before)):
        from runyard.cli.overview import overview

        print(overview())
        return None
    from runyard.cli.parser import build_parser, unknown_command

    if wrong is not None or first not in COMMANDS:
        raise unknown_command(wrong or first or "")
    parser, chosen = build_parser(command_of(words))
    args, unknown = parser.parse_known_args(words)
    if chosen is not None:
        chosen.refuse_single_dashes(words, args)
    if unknown and chosen is not None:
        chosen.refuse_unknown(unknown)
    return args


def _load_and_run(args: argparse.Namespace) -> int:
    from runyard.cli.parser import load
    from runyard.schedulers.choice import choose

    choose(getattr(args, "on", None))
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # A terminal without UTF-8 gets "?", no traceback.
    from runyard.cli.streams import printable_streams

    with printable_streams():
        return load(args.command).run(args)


def _asks_debug(words: list[str]) -> bool:
    # What stands behind `--` belongs to the user's program.
    own = words[: words.index("--")] if "--" in words else words
    return bool(os.environ.get("RUNYARD_DEBUG")) or "--debug" in own


def _open_missing_streams() -> None:
    """Started with `>&-`, the next file we open would be taken for our output."""
    for handle in (0, 1, 2):
        try:
            os.fstat(handle)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r+"))  # noqa: SIM115, PTH123 - Stays open.


def _fail(message: str, code: int) -> int:
    from runyard.printable import printable

    _flush()
    try:
        print(printable(message), file=sys.stderr, flush=True)
    except OSError:
        _drop_output(2)
    return code


def _flush() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()


def _drop_output(handle: int = 1) -> None:
    # Else the interpreter tries once more at its end, and complains.
    os.dup2(os.open(os.devnull, os.O_WRONLY), handle)
