"""The commands, in the order in which help lists them. Each is a module of its name."""

COMMANDS = {
    "init": "write a runyard.yaml for this project",
    "run": "run a program on this machine and track it",
    "submit": "run a program as a job of the cluster",
    "sweep": "make a sweep of a file and run it, or join one",
    "farm": "run a list of command lines",
    "repeat": "run one command with several seeds",
    "gauge": "measure what a program needs, and how many share a GPU",
    "rehearse": "try a program small before a launch, rung by rung",
    "sweeps": "list sweeps",
    "status": "how all that is at work stands",
    "jobs": "list jobs: what each asked for, and what it used",
    "top": "CPU, memory and GPU of what runs now",
    "retry": "run the failed trials of a sweep again",
    "rerun": "run a trial or a run once more",
    "cancel": "end a sweep, a trial or a job at once",
    "agents": "list, drain or add the agents of sweeps",
    "partitions": "what the cluster has, and how much of it is free",
    "usage": "the hours that you have used",
    "shell": "a shell on a compute node, or inside a job",
    "best": "show a sweep's best trials",
    "report": "what a sweep, a job or a project cost, and what came of it",
    "compare": "compare runs or sweeps, over their seeds",
    "ui": "open the page: charts, runs, sweeps and jobs in a browser",
    "runs": "list runs",
    "show": "show a run or a sweep",
    "logs": "print what a run, a sweep or a job printed",
    "export": "write runs as a table: CSV, Parquet, JSON lines",
    "stop": "ask a run or a sweep to stop",
    "delete": "delete runs for good",
    "env": "print what a shell needs so that wandb logs here",
    "login": "store a server's key where wandb finds it, or check it",
    "users": "list, add or remove the people on this server",
    "keys": "list, add or revoke keys",
    "sessions": "list or end the page's sessions",
    "teams": "list, add or remove teams",
    "sync": "bring in runs that were recorded without the server",
    "push": "send runs to W&B's cloud or to another server",
    "doctor": "check this cluster, this project, and what jobs can reach",
    "clusters": "list the clusters that runyard knows, and which one this is",
    "clean": "remove copies of code that no job needs",
    "server": "start, stop or look at the server",
    "completion": "print the completion script of a shell",
}

_FOLDERS = {
    "starting": "run submit sweep farm repeat gauge rehearse retry rerun agents shell",
    "watching": "sweeps status jobs top runs show logs best report compare export cancel stop "
    "delete",
    "admin": "init env login ui server users keys sessions teams sync push clean doctor clusters "
    "partitions usage",
}


def module_of(command: str) -> str:
    """The module that has the command."""
    folders = [folder for folder, commands in _FOLDERS.items() if command in commands.split()]
    return ".".join(["runyard", "cli", *folders, command])
