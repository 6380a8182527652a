"""The commands, grouped by what people do, in the order in which help lists them. Each is a module
of its name."""

GROUPS = {
    "start": {
        "init": "write a runyard.yaml for this project",
        "run": "run a program on this machine and track it",
        "submit": "run a program as a job of the cluster",
        "sweep": "make a sweep of a file and run it, or join one",
        "farm": "run a list of command lines",
        "repeat": "run one command with several seeds",
        "rehearse": "try a program small before a launch, rung by rung",
        "gauge": "measure what a program needs, and how many share a GPU",
        "retry": "run the failed trials of a sweep again, or any run once more",
        "agents": "list, drain or add the agents of sweeps",
        "shell": "a shell on a compute node, or inside a job",
    },
    "watch": {
        "status": "how all that is at work stands; jobs, and what they use",
        "runs": "list runs or sweeps",
        "show": "show a run or a sweep, or its best trials",
        "logs": "print what a run, a sweep or a job printed",
        "ui": "open the page: charts, runs, sweeps and jobs in a browser",
    },
    "results": {
        "compare": "compare runs or sweeps, over their seeds",
        "report": "what a sweep, a job or a project cost, and what came of it",
        "export": "write runs as a table: CSV, Parquet, JSON lines",
        "sync": "bring in runs recorded without the server, or send runs away",
    },
    "end and tidy": {
        "cancel": "end a sweep, a run or a job",
        "delete": "delete runs; the trash keeps them for 30 days",
        "clean": "remove what no job needs: copies of code, old logs, leftovers",
    },
    "cluster and server": {
        "clusters": "which cluster this is, what is free, and the hours you used",
        "doctor": "check this cluster, this project, and what jobs can reach",
        "server": "start, stop or look at the server",
        "login": "store a server's key where wandb finds it, or check it",
        "env": "print what a shell needs so that wandb logs here",
        "users": "the people on this server, their keys, teams and sessions",
        "completion": "print the completion script of a shell",
    },
}
COMMANDS = {name: text for commands in GROUPS.values() for name, text in commands.items()}
# Commands behind the name of another.
SUBCOMMANDS = {
    "clusters partitions": "what the cluster has, and how much of it is free",
    "clusters usage": "the hours that you have used",
    "users keys": "list, add or revoke keys",
    "users teams": "list, add or remove teams",
    "users sessions": "list or end the page's sessions",
}

# A command, or an option of one, that is gone, and what does it now. None of them runs.
FORMER: dict[str, str] = {
    "rerun": "retry",
    "sweep --check": "rehearse --rung settings FILE",
    "sweep --check-time": "rehearse --time",
    "jobs": "status --jobs",
    "top": "status --live",
    "sweeps": "runs --sweeps",
    "best": "show --best",
    "push": "sync --to",
    "stop": "cancel --finish",
    "partitions": "clusters partitions",
    "usage": "clusters usage",
    "keys": "users keys",
    "teams": "users teams",
    "sessions": "users sessions",
}

_FOLDERS = {
    "starting": "run submit sweep farm repeat gauge rehearse retry agents shell",
    "watching": "status runs show logs report compare export cancel delete",
    "admin": "init env login ui server users keys sessions teams sync clean doctor clusters "
    "partitions usage",
}


def module_of(command: str) -> str:
    """The module that has the command: that of its last word."""
    name = command.split()[-1]
    folders = [folder for folder, commands in _FOLDERS.items() if name in commands.split()]
    return ".".join(["runyard", "cli", *folders, name])


def command_of(words: list[str]) -> str | None:
    """The command that is typed; with its second word, where the two are a command of their own."""
    named = [word for word in words if not word.startswith("-")][:2]
    both = " ".join(named)
    return both if both in SUBCOMMANDS else named[0] if named else None


def now_called(former: str) -> str | None:
    """What to type for a command or an option that is gone."""
    now = FORMER.get(former)
    return None if now is None else f"`runyard {former}` is now `runyard {now}`"
