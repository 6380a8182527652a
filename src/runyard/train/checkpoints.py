"""The state of a training run: saved whole or not at all, and found again by the next attempt."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from runyard.save_protocol import GO_ON_NOTE, USED_NOTE
from runyard.train import exchange, folders
from runyard.train.errors import Damaged, TrainError
from runyard.train.frameworks import loaded, wandb_run
from runyard.train.randomness import random_states, set_random_states
from runyard.train.saying import say, warn
from runyard.train.stopping import watch_signals
from runyard.train.torch_state import fill, is_torch_object, read_state, state_of, write_state
from runyard.train.trees import check_tree, read_tree, write_tree

# Parts cannot begin with an underscore.
_RANDOM = "_random"
# Where the client brings rows to its file this often, in seconds, a save waits for so many times.
_SHORT_FLUSH, _FLUSHES = 0.5, 3


class _Best(NamedTuple):
    """The best score so far. A folder of None, on disk, means the checkpoint that says so."""

    score: float | None = None
    step: int | None = None
    folder: str | None = None


class _Found(NamedTuple):
    path: Path
    manifest: dict[str, Any]


class Checkpoint:
    """What training needs to go on, under names of the program's choice.

        state = train.Checkpoint(model=model, optimizer=optimizer, every_seconds=600, keep=2)
        start = state.resume()

    A part may be anything with `state_dict()` and `load_state_dict()`, an array or tree of arrays
    of torch, JAX or numpy, a number, a text, bytes, a random generator, or an object with
    `save(folder)` and `load(folder)`. Parts are attributes: `state.params = params` gives one its
    new value, or adds one. Random states and the W&B run belong to every checkpoint.

    Every rank makes one and calls its methods; rank 0 writes. `folder` is the trial's folder
    (RUNYARD_CHECKPOINT_DIR) by default, or `checkpoints/PROGRAM` where nothing set it. `best` says
    which score is better, "min" or "max". A disk that is full is told and training goes on with
    the last checkpoint; `strict=True` raises the error instead.
    """

    def __init__(
        self,
        *,
        folder: str | os.PathLike[str] | None = None,
        every_seconds: float | None = None,
        every_steps: int | None = None,
        keep: int = 2,
        best: str = "min",
        strict: bool = False,
        **parts: Any,
    ) -> None:
        if best not in ("min", "max"):
            raise TrainError(f"best={best!r}: it is 'min' or 'max'")
        if keep < 1:
            raise TrainError(f"keep={keep}: at least one checkpoint is kept")
        if every_seconds is None and every_steps is None:
            every_seconds = 600.0
        self._parts: dict[str, Any] = {}
        self._folder = Path(folder) if folder is not None else _default_folder()
        self._every_seconds = every_seconds
        self._every_steps = every_steps
        self._keep = keep
        self._sign = 1 if best == "min" else -1
        self._strict = strict
        self._step = 0
        self._best = _Best()
        self._candidate: float | None = None
        self._found: _Found | None = None
        self._random_place: Path | None = None
        self._last_save = time.monotonic()
        self._save_seconds = 0.0
        self._last_values: dict[str, Any] = {}
        for name, value in parts.items():
            setattr(self, name.lstrip("_"), value)
        watch_signals()

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            super().__setattr__(name, value)
        elif hasattr(type(self), name):
            raise TrainError(
                f"a part of a checkpoint cannot be called {name!r}: the checkpoint uses that name",
                mend=f"call it {name}_part",
            )
        else:
            self._parts[name] = value

    def __getattr__(self, name: str) -> Any:
        parts = self.__dict__.get("_parts", {})
        if name in parts:
            return parts[name]
        raise AttributeError(f"the checkpoint has no part {name!r}; it has {', '.join(parts)}")

    @property
    def folder(self) -> Path:
        """Where the checkpoints are."""
        return self._folder

    @property
    def step(self) -> int:
        """The steps that were done at the newest checkpoint."""
        return self._step

    @property
    def best_score(self) -> float | None:
        """The best score so far, of earlier attempts too."""
        return self._best.score if self._candidate is None else self._candidate

    @property
    def best_step(self) -> int | None:
        """The steps that were done at the best score."""
        return self._best.step

    @property
    def save_seconds(self) -> float:
        """How long the last save took."""
        return self._save_seconds

    def resume(self) -> int:
        """Load the newest whole checkpoint into the parts. The number of steps done; 0 if none.

        All ranks load the same one. One that is damaged is passed over, with a line that says so.
        """
        for name, value in self._parts.items():
            _check(name, value)
        chosen = exchange.from_rank_0("resuming: which checkpoint", self._choose)
        self._last_save = time.monotonic()
        if chosen is None:
            return 0
        step = int(chosen.manifest["step"])
        failure = None
        try:
            self._load(chosen.path, chosen.manifest)
        except Exception as error:
            failure = error
        trouble = None if failure is None else f"{type(failure).__name__}: {failure}"
        failed = [text for text in exchange.gather("resuming: loaded", trouble) if text]
        if failed:
            raise TrainError(
                f"the checkpoint of step {step} in {self.folder} cannot be used by this program",
                said=failed[0],
                mend=f"undo the change of the program, or move {self.folder} away to start anew",
            ) from failure
        self._step = step
        self._best = _Best(*(chosen.manifest["best"] or ()))
        if self._best.score is not None and self._best.folder is None:
            self._best = self._best._replace(folder=chosen.path.name)
        say(f"going on at step {step} from {chosen.path}")
        return step

    def save(self, step: int) -> bool:
        """Save now: `step` steps are done. Every rank calls it. False if the disk refused it."""
        began = time.monotonic()
        parts = [self._part(name, value) for name, value in self._parts.items()]
        everyone = exchange.gather(f"saving step {step}", random_states())
        best = self._best if self._candidate is None else _Best(self._candidate, step, None)
        written = exchange.from_rank_0(
            f"saved step {step}", lambda: self._write(step, parts, everyone, best)
        )
        self._last_save = time.monotonic()
        self._save_seconds = self._last_save - began
        # A best score whose model could not be kept is forgotten with it.
        self._candidate = None
        if written is not None:
            self._step, self._best = step, written
            self._found = self._random_place = None
            self._look_for_forgotten_parts()
        return written is not None

    def score(self, value: float) -> bool:
        """Tell how good the model is now. True if it is not worse than ever before.

        The loop then saves at the end of this step, and that checkpoint is kept as the best.
        Every rank calls it; rank 0's value counts.
        """
        number = exchange.from_rank_0("score", lambda: float(value))
        best = self.best_score
        better = not math.isnan(number) and (
            best is None or self._sign * number <= self._sign * best
        )
        if better:
            self._candidate = number
        return better

    def due(self, step: int) -> bool:
        """Whether the step count or a best score asks for a save; the same on every rank."""
        return self._candidate is not None or bool(
            self._every_steps and step % self._every_steps == 0
        )

    def time_is_due(self) -> bool:
        """Whether the clock asks for a save: for rank 0 to decide."""
        if self._every_seconds is None:
            return False
        return time.monotonic() - self._last_save >= self._every_seconds

    def wandb(self) -> dict[str, Any]:
        """What `wandb.init` needs to go on with the run: `wandb.init(..., **state.wandb())`."""
        name = exchange.from_rank_0("which W&B run", self._wandb_id)
        return {"id": name, "resume": "allow"} if name else {}

    def restore_random_states(self) -> None:
        """Put the random states back as they were saved; the loop does, right before its start."""
        if self._random_place is None:
            return
        with self._random_place.open("rb") as file:
            states = read_tree(file)
        # With more ranks than before, the new ones keep the seeds that they have.
        if exchange.rank() < len(states):
            set_random_states(states[exchange.rank()])

    def _wandb_id(self) -> str | None:
        # Set for rank 0 alone where it asked an agent for its trial.
        if run_id := os.environ.get("WANDB_RUN_ID"):
            return run_id
        chosen = self._choose()
        run = None if chosen is None else chosen.manifest.get("wandb")
        return run["id"] if run else None

    def _choose(self) -> _Found | None:
        """The newest whole checkpoint; what is damaged is moved out of the way. Rank 0 only."""
        if self._found is not None:
            return self._found
        folders.take(self.folder)
        folders.remove_leftovers(self.folder)
        (self.folder / GO_ON_NOTE).unlink(missing_ok=True)
        for entry in reversed(folders.saved(self.folder)):
            try:
                self._found = _Found(entry.path, folders.verify(entry.path))
            except Damaged as error:
                aside: Path | None = None
                with contextlib.suppress(OSError):
                    aside = folders.set_aside(entry.path)
                warn(
                    f"the checkpoint of step {entry.step} is damaged and passed over: {error.what}"
                    + (f" (kept as {aside})" if aside else "")
                )
            else:
                return self._found
        if os.environ.get("RUNYARD_CHECKPOINT_DIR"):
            # Whoever runs us again then knows that we begin anew, until there is a checkpoint.
            with contextlib.suppress(OSError):
                (Path(os.environ["RUNYARD_CHECKPOINT_DIR"]) / USED_NOTE).touch()
        return None

    def _load(self, place: Path, manifest: dict[str, Any]) -> None:
        kinds = manifest["parts"]
        for name in self._parts:
            if name not in kinds:
                raise TrainError(f"it has no part {name!r}; it has {', '.join(kinds)}")
        for name, value in self._parts.items():
            if kinds[name] == "folder":
                value.load(place / name)
            elif kinds[name] == "torch":
                fill(value, read_state(str(place / f"{name}.pt")))
            else:
                with (place / f"{name}.tree").open("rb") as file:
                    self._parts[name] = read_tree(file, value)
        self._random_place = place / f"{_RANDOM}.tree"
        self.restore_random_states()

    def _part(self, name: str, value: Any) -> tuple[str, folders.Part]:
        if _writes_folder(value):
            return "folder", folders.Part(name, None, value.save)
        if is_torch_object(value):
            state = state_of(value)
            return "torch", folders.Part(f"{name}.pt", lambda file: write_state(state, file))
        return "tree", folders.Part(f"{name}.tree", _tree_writer(value))

    def _write(
        self,
        step: int,
        parts: list[tuple[str, folders.Part]],
        random: list[dict[str, Any]],
        best: _Best,
    ) -> _Best | None:
        """What is the best checkpoint now; None if this one could not be written. Rank 0 only."""
        run = wandb_run()
        if run is not None:
            _wait_for_rows()
        about = {
            "saved_at": time.time(),
            "ranks": len(random),
            "attempt": os.environ.get("RUNYARD_ATTEMPT"),
            "parts": dict(zip(self._parts, (kind for kind, _ in parts), strict=True)),
            "best": None if best.score is None else best,
            "wandb": None if run is None else {"id": run.id, "step": run.step},
        }
        files = [part for _, part in parts]
        files.append(folders.Part(f"{_RANDOM}.tree", _tree_writer(random)))
        try:
            place = folders.write(self.folder, step, files, about)
        except OSError as error:
            folders.take(self.folder)  # Or has a later attempt removed what was being written?
            if self._strict:
                raise
            good = folders.saved(self.folder)
            warn(
                f"the checkpoint of step {step} could not be saved in {self.folder}: {error}; "
                + (f"the one of step {good[-1].step} stays" if good else "there is none yet")
                + "; training goes on. Is the disk full, or a quota? (df -h, quota -s)"
            )
            return None
        folders.point(self.folder, "latest", place)
        if best.score is not None and best.folder is None:
            best = best._replace(folder=place.name)
            folders.point(self.folder, "best", place)
        folders.tidy(self.folder, self._keep, best.folder)
        return best

    def _look_for_forgotten_parts(self) -> None:
        """Values that cannot change in place, and are still those of the save before."""
        for name, value in self._parts.items():
            if _immutable(value):
                before = self._last_values.get(name)
                if before is not None and before is value:
                    warn(
                        f"{name!r} has not changed since the last checkpoint. If it should have: "
                        f"assign it to the checkpoint in the loop, state.{name} = {name}"
                    )
                self._last_values[name] = value


def _wait_for_rows() -> None:
    """Wait until what was logged is in the client's file: no checkpoint is to be there before it.

    The agent has it written ten times a second; by itself the client does so now and then.
    """
    interval = float(os.environ.get("WANDB_X_TRANSACTION_LOG_FLUSH_INTERVAL") or 0)
    if interval <= _SHORT_FLUSH:
        time.sleep(_FLUSHES * interval)


def _default_folder() -> Path:
    if named := os.environ.get("RUNYARD_CHECKPOINT_DIR"):
        return Path(named)
    return Path("checkpoints") / (Path(sys.argv[0]).stem or "python")


def _writes_folder(value: object) -> bool:
    return all(callable(getattr(value, name, None)) for name in ("save", "load")) and not hasattr(
        value, "state_dict"
    )


def _check(name: str, value: Any) -> None:
    """Say now, not after ten hours, that a part cannot be saved."""
    try:
        if _writes_folder(value):
            return
        if is_torch_object(value):
            state_of(value)
        else:
            check_tree(value)
    except TrainError as error:
        raise TrainError(f"{name}: {error.what}", said=error.said, mend=error.mend) from error


def _tree_writer(value: object) -> Callable[[BinaryIO], None]:
    return lambda file: write_tree(value, file)


def _immutable(value: object) -> bool:
    jax = loaded("jax")
    if isinstance(value, (int, float, tuple)) and not isinstance(value, bool):
        return True
    return jax is not None and any(
        isinstance(leaf, jax.Array) for leaf in jax.tree_util.tree_leaves(value)
    )
