"""The commands, in the order in which help lists them. Each is a module of this name."""

COMMANDS = {
    "run": "run a program on this machine and track it",
    "runs": "list runs",
    "show": "show a run: config, summary, metrics",
    "logs": "print what a run printed",
    "stop": "ask a run to stop",
    "delete": "delete runs for good",
    "env": "print what a shell needs so that wandb logs here",
    "server": "start, stop or look at the server",
    "completion": "print the completion script of a shell",
}
