"""What `runyard --help` prints. Without argparse: on a busy file system its import is felt."""

from runyard.cli.catalog import COMMANDS

OPTIONS = {
    "-h, --help": "show this",
    "-V, --version": "print the version",
    "--debug": "show where in runyard an error came from",
}


def overview() -> str:
    return "\n".join(
        (
            "usage: runyard COMMAND ...",
            "",
            "Take an experiment that works on a laptop to the cluster and back.",
            "",
            "commands:",
            *_rows(COMMANDS),
            "",
            "options:",
            *_rows(OPTIONS),
            "",
            "`runyard COMMAND --help` says more about each.",
        )
    )


def _rows(texts: dict[str, str]) -> list[str]:
    return [f"  {name:<15} {text}" for name, text in texts.items()]
