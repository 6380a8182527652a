"""The commands, in the order in which help lists them. Each is a module of this name."""

COMMANDS = {
    "run": "run a program on this machine and track it",
    "runs": "list runs",
    "show": "show a run: config, summary, metrics",
    "logs": "print what a run printed",
    "export": "write runs as a table: CSV, Parquet, JSON lines",
    "env": "print what a shell needs so that wandb logs here",
    "server": "start, stop or look at the server",
    "completion": "print the completion script of a shell",
}
