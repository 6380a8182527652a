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
        "status": "how all that is at work stands",
        "jobs": "list jobs: what each asked for, and what it used",
        "top": "CPU, memory and GPU of what runs now",
        "sweeps": "list sweeps",
        "runs": "list runs",
        "show": "show a run or a sweep",
        "logs": "print what a run, a sweep or a job printed",
        "ui": "open the page: charts, runs, sweeps and jobs in a browser",
    },
    "results": {
        "best": "show a sweep's best trials",
        "compare": "compare runs or sweeps, over their seeds",
        "report": "what a sweep, a job or a project cost, and what came of it",
        "export": "write runs as a table: CSV, Parquet, JSON lines",
        "sync": "bring in runs that were recorded without the server",
        "push": "send runs to W&B's cloud or to another server",
    },
    "end and tidy": {
        "stop": "ask a run or a sweep to stop",
        "cancel": "end a sweep, a trial or a job at once",
        "delete": "delete runs for good",
        "clean": "remove copies of code that no job needs",
    },
    "cluster and server": {
        "clusters": "list the clusters that runyard knows, and which one this is",
        "partitions": "what the cluster has, and how much of it is free",
        "usage": "the hours that you have used",
        "doctor": "check this cluster, this project, and what jobs can reach",
        "server": "start, stop or look at the server",
        "login": "store a server's key where wandb finds it, or check it",
        "env": "print what a shell needs so that wandb logs here",
        "users": "list, add or remove the people on this server",
        "keys": "list, add or revoke keys",
        "sessions": "list or end the page's sessions",
        "teams": "list, add or remove teams",
        "completion": "print the completion script of a shell",
    },
}
COMMANDS = {name: text for commands in GROUPS.values() for name, text in commands.items()}

# A command, or an option of one, that is gone, and what does it now. None of them runs.
FORMER: dict[str, str] = {
    "rerun": "retry",
    "sweep --check": "rehearse --rung settings FILE",
    "sweep --check-time": "rehearse --time",
}

_FOLDERS = {
    "starting": "run submit sweep farm repeat gauge rehearse retry agents shell",
    "watching": "sweeps status jobs top runs show logs best report compare export cancel stop "
    "delete",
    "admin": "init env login ui server users keys sessions teams sync push clean doctor clusters "
    "partitions usage",
}


def module_of(command: str) -> str:
    """The module that has the command."""
    folders = [folder for folder, commands in _FOLDERS.items() if command in commands.split()]
    return ".".join(["runyard", "cli", *folders, command])


def now_called(former: str) -> str | None:
    """What to type for a command or an option that is gone."""
    now = FORMER.get(former)
    return None if now is None else f"`runyard {former}` is now `runyard {now}`"
