"""The commands, in the order in which help lists them. Each is a module of this name."""

COMMANDS = {
    "run": "run a program on this machine and track it",
    "sweep": "make a sweep of a file and run it, or join one",
    "sweeps": "list sweeps",
    "best": "show a sweep's best trials",
    "runs": "list runs",
    "show": "show a run or a sweep",
    "logs": "print what a run printed",
    "export": "write runs as a table: CSV, Parquet, JSON lines",
    "stop": "ask a run or a sweep to stop",
    "delete": "delete runs for good",
    "env": "print what a shell needs so that wandb logs here",
    "login": "store a server's key where wandb finds it, or check it",
    "users": "list, add or remove the people on this server",
    "keys": "list, add or revoke keys",
    "teams": "list, add or remove teams",
    "sync": "bring in runs that were recorded without the server",
    "push": "send runs to W&B's cloud or to another server",
    "server": "start, stop or look at the server",
    "completion": "print the completion script of a shell",
}
