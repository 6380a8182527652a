"""What `runyard --help` prints. Without argparse: on a busy file system its import is felt."""

from runyard.cli.catalog import GROUPS

OPTIONS = {
    "-h, --help": "show this",
    "-V, --version": "print the version",
    "--debug": "show where in runyard an error came from",
}

EXIT_CODES = {
    "0": "it is done",
    "1": "something failed; the message says what, and what to try",
    "2": "what was typed, or a file of yours, is wrong; nothing began",
    "70": "a mistake in runyard itself",
    "130": "Ctrl-C",
    "others": "`run`: the program's own; `farm`: how many lines failed",
}


def overview() -> str:
    return "\n".join(
        (
            "usage: runyard COMMAND ...",
            "",
            "Take an experiment that works on a laptop to the cluster and back.",
            "",
            *(line for group in GROUPS.items() for line in _group(*group)),
            "options:",
            *_rows(OPTIONS),
            "",
            "`runyard COMMAND --help` says more about each, with examples.",
            "First steps: runyard run -- python train.py, then runyard show, then runyard ui.",
            "",
            "exit codes:",
            *_rows(EXIT_CODES),
        )
    )


def _group(title: str, texts: dict[str, str]) -> list[str]:
    return [f"{title}:", *_rows(texts), ""]


def _rows(texts: dict[str, str]) -> list[str]:
    return [f"  {name:<15} {text}" for name, text in texts.items()]
