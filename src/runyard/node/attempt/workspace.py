"""Where an attempt runs, and with what: its files, its folders and its environment."""

from __future__ import annotations

import contextlib
import os

from runyard.save_protocol import GO_ON_NOTE, take_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from runyard.node.link.place import ServerAddress

# How often the client brings rows to its own file (from 0.31 on), from where a hard death's rest is
# read: its process ends with the program's, sent or not.
_FLUSH_SECONDS = "0.1"


class Workspace:
    """Of one trial on this node."""

    def __init__(
        self,
        claim: dict[str, Any],
        address: ServerAddress,
        folder: str,
        environ: dict[str, str],
        launcher: list[str] | None = None,
        url: str | None = None,
    ) -> None:
        from runyard.client.wandb_variables import FOREIGN_SERVICE, wandb_variables

        assert address.handed is not None  # The state folder's own key is for no program.

        foreign = (FOREIGN_SERVICE, "WANDB_SWEEP_ID")  # of whoever started us
        run, trial = claim["run"], claim["trial"]
        page = address.public_url or address.page
        self.folder = folder
        self._launcher = launcher or []
        self.trial_folder = _make_trial_folder(
            run["folder"], f"{folder}/sweeps/{claim['sweep']}/{trial['name']}"
        )
        self.checkpoints = f"{self.trial_folder}/checkpoints"
        # Before it is looked at from where to go on: no attempt before this one saves any more.
        take_folder(self.checkpoints, run["id"], claim["attempt"])
        self.stop_file = f"{self.trial_folder}/stop"
        self.run_id = run["id"]
        self.wandb_folder = wandb_folder = environ.get("WANDB_DIR") or self.trial_folder
        self._files = f"{wandb_folder}/wandb/sweep-{claim['sweep']}/config-{run['id']}"
        self._claim = claim
        self.environ = {
            **{name: value for name, value in environ.items() if name not in foreign},
            **wandb_variables(
                url or address.url, address.handed, environ, is_ours=not address.is_elsewhere
            ),
            # Links that a client prints lead to where people come in, also where it logs by a door.
            **({"WANDB_APP_URL": page} if (url or address.url) != page else {}),
            "WANDB_ENTITY": run["entity"],
            "WANDB_PROJECT": run["project"],
            "WANDB_RUN_ID": run["id"],
            **({"WANDB_NAME": run["name"]} if run["name"] else {}),
            "WANDB_RESUME": "allow",
            "WANDB_DIR": wandb_folder,
            "WANDB_X_TRANSACTION_LOG_FLUSH_INTERVAL": environ.get(
                "WANDB_X_TRANSACTION_LOG_FLUSH_INTERVAL", _FLUSH_SECONDS
            ),
            "WANDB_SWEEP_PARAM_PATH": f"{self._files}.yaml",
            # With it the client passes over the project and entity that the program names.
            **({"WANDB_SWEEP_ID": str(claim["sweep"])} if claim.get("is_search", True) else {}),
            "RUNYARD_SWEEP": str(claim["sweep"]),
            "RUNYARD_TRIAL": str(trial["name"]),
            "RUNYARD_ATTEMPT": str(claim["attempt"]),
            "RUNYARD_CHECKPOINT_DIR": self.checkpoints,
            "RUNYARD_STOP_FILE": self.stop_file,
            "PYTHONUNBUFFERED": environ.get("PYTHONUNBUFFERED", "1"),
        }

    def prepare(self) -> list[str]:
        """Write the trial's files; the words to execute."""
        from runyard.node.attempt.command_line import expand  # Here: not before there is a trial.
        from runyard.node.attempt.parameter_file import parameter_file

        for path in (self.stop_file, f"{self.checkpoints}/{GO_ON_NOTE}"):  # Of another attempt.
            with contextlib.suppress(OSError):
                os.unlink(path)
        os.makedirs(os.path.dirname(self._files), exist_ok=True)
        _write(f"{self._files}.yaml", parameter_file(self._claim["args"]))

        def json_file(text: str) -> str:
            _write(f"{self._files}.json", text)
            return f"{self._files}.json"

        claim = self._claim
        words = expand(claim["command"], claim["program"], claim["args"], self.environ, json_file)
        return [*self._launcher, *words]

    def write_stop_file(self, cause: str) -> None:
        """Tell the program to save and end, where it looks for the word."""
        with contextlib.suppress(OSError):
            _write(self.stop_file, f"{cause}\n")


def _make_trial_folder(wanted: str | None, instead: str) -> str:
    """Where the sweep has it, or, on a machine that has no such place, here."""
    if wanted is not None:
        with contextlib.suppress(OSError):
            os.makedirs(f"{wanted}/checkpoints", exist_ok=True)
            return wanted
    os.makedirs(f"{instead}/checkpoints", exist_ok=True)
    return instead


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
