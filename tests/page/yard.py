"""A server with sweeps, agents, jobs and reports in it, for looking at in a browser.

Everything comes over HTTP, as agents, clients and commands send it; only the programs are missing.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.client.http import Connection
from runyard.home import Home, read_discovery

SEARCH: Mapping[str, Any] = {
    "name": "resnet on birds",
    "description": "learning rate against depth",
    "method": "bayes",
    "program": "train.py",
    "metric": {"name": "val_loss", "goal": "minimize"},
    "run_cap": 60,
    "parameters": {
        "lr": {"distribution": "log_uniform_values", "min": 1e-5, "max": 1e-1},
        "depth": {"distribution": "int_uniform", "min": 2, "max": 12},
        "dropout": {"min": 0.0, "max": 0.5},
        "optimizer": {"values": ["adam", "sgd", "lion"]},
        "augment": {"values": [True, False]},
    },
}
TWO_AIMS: Mapping[str, Any] = {
    "name": "fast and good",
    "method": "random",
    "program": "train.py",
    "run_cap": 40,
    "runyard": {
        "metrics": [
            {"name": "val_loss", "goal": "minimize"},
            {"name": "speed", "goal": "maximize"},
        ]
    },
    "parameters": {
        "width": {"distribution": "int_uniform", "min": 8, "max": 512},
        "depth": {"distribution": "int_uniform", "min": 1, "max": 16},
    },
}

Measure = Callable[[Mapping[str, Any]], dict[str, float]]


def loss_of(values: Mapping[str, Any]) -> dict[str, float]:
    """Best at a learning rate of 1e-3 and six layers; Adam is better."""
    away = (math.log10(values["lr"]) + 3) ** 2 * 0.35 + (values["depth"] - 6) ** 2 * 0.012
    kind = {"adam": 0.0, "lion": 0.08, "sgd": 0.25}[values["optimizer"]]
    return {"val_loss": 0.4 + away + kind + random.random() * 0.06}


def trade_off(values: Mapping[str, Any]) -> dict[str, float]:
    size = values["width"] * values["depth"]
    loss = 2.5 / math.log(size + 3) + random.random() * 0.15
    return {"val_loss": loss, "speed": 4000 / (size + 40) * (0.8 + 0.4 * random.random())}


@dataclass
class Yard:
    """A server that is up, and how to fill it."""

    home: Home
    connection: Connection
    key: str

    @property
    def api(self) -> Api:
        return Api(self.connection)

    @property
    def url(self) -> str:
        return self.connection.url

    def me(self) -> str:
        name: str = self.connection.get("/api/me")["name"]
        return name

    def log(self, run: Mapping[str, Any], rows: list[dict[str, Any]], start: int = 0) -> None:
        lines = [json.dumps({"_step": start + place, **row}) for place, row in enumerate(rows)]
        self.connection.post(
            f"/files/{run['entity']}/{run['project']}/{run['id']}/file_stream",
            {"files": {"wandb-history.jsonl": {"offset": start, "content": lines}}},
        )

    def log_system(self, run: Mapping[str, Any], samples: int = 24) -> None:
        """What its machine and its GPU did, as the client samples it."""
        rows = [
            {
                "_runtime": 15.0 * place,
                "_timestamp": 1.7e9 + 15 * place,
                "system.gpu.0.gpu": 70 + 20 * math.sin(place / 3),
                "system.gpu.0.memoryAllocated": 60 + place / 4,
                "system.cpu": 22 + 6 * math.cos(place / 2),
                "system.memory_percent": 41 + place / 10,
            }
            for place in range(samples)
        ]
        self.connection.post(
            f"/files/{run['entity']}/{run['project']}/{run['id']}/file_stream",
            {
                "files": {
                    "wandb-events.jsonl": {
                        "offset": 0,
                        "content": [json.dumps(row) for row in rows],
                    }
                }
            },
        )

    def sweep(self, config: Mapping[str, Any], project: str = "birds") -> Any:
        return self.connection.post("/api/sweeps", {"config": dict(config), "project": project})

    def agent(self, sweep: Mapping[str, Any], **about: Any) -> int:
        given = {"token": f"t{random.random()}", "host": "node01", "pid": 4242, "slots": 2, **about}
        begun = self.connection.post(f"/api/sweeps/{sweep['key']}/agents", given)
        agent: int = begun["agent"]
        return agent

    def claim(self, agent: int, wait: float = 0.0) -> Any:
        given = {"token": f"c{random.random()}", "wait": wait}
        return self.connection.post(f"/api/agents/{agent}/claim", given)

    def end(
        self, agent: int, held: Mapping[str, Any], code: int = 0, cause: str | None = None
    ) -> None:
        self.connection.post(
            f"/api/agents/{agent}/ends",
            {
                "trial": held["trial"]["number"],
                "attempt": held["attempt"],
                "exit_code": code,
                "cause": cause,
                "ended_at": time.time(),
            },
        )

    def work(
        self,
        sweep: Mapping[str, Any],
        count: int,
        measure: Measure,
        *,
        stop: float = 0.0,
        **about: Any,
    ) -> None:
        """Trials from the claim to the end; a share of them is stopped early, and one fails."""
        agent = self.agent(sweep, **about)
        for number in range(count):
            held = self.claim(agent)
            if held["do"] != "run":
                return
            goal = measure(held["trial"]["values"])
            rows = [
                {name: value * (1 + 1.5 * math.exp(-step / 2)) for name, value in goal.items()}
                for step in range(7)
            ]
            if number == 4:
                self.log(held["run"], rows[:2])
                self.end(agent, held, 1)
                continue
            self.log(held["run"], [*rows, goal])
            self.summarise(held["run"], goal)
            if random.random() < stop:
                self.connection.post(f"/api/runs/{held['run']['key']}/stop")
                self.end(agent, held, 143, "stopped")
            else:
                self.end(agent, held)
        self.connection.post(f"/api/agents/{agent}/leave", {"why": "done"})

    def summarise(self, run: Mapping[str, Any], values: Mapping[str, float]) -> None:
        line = json.dumps(values)
        self.connection.post(
            f"/files/{run['entity']}/{run['project']}/{run['id']}/file_stream",
            {"files": {"wandb-summary.json": {"offset": 0, "content": [line]}}},
        )

    def keep_busy(self, sweep: Mapping[str, Any], count: int = 1) -> None:
        """An agent in a job, with trials at work that tell what they use."""
        agent = self.agent(sweep, host="gpu014", node="ng30203", job="48213_0")
        running = []
        for number in range(count):
            held = self.claim(agent)
            self.log(held["run"], [{"val_loss": 2.0 - step / 5} for step in range(5)])
            usage = {
                "gpu_use": 0.71 - number / 10,
                "vram_peak": 11e9 + number * 1e9,
                "memory_peak": 6.2e9,
                "gpu": "0",
            }
            told = {"trial": held["trial"]["number"], "attempt": held["attempt"]}
            running.append({**told, "usage": usage})
        packing = f"GPU 0: {count} at a time (more did not get more done)"
        content = {"running": running, "packing": packing}
        self.connection.post(f"/api/agents/{agent}/renew", content)


def open_yard(home: Home) -> Yard:
    ensure_server(home)
    discovery = read_discovery(home)
    assert discovery is not None
    return Yard(home, Connection(discovery.url, discovery.key), discovery.key)


SCRIPT = """#!/bin/bash
#SBATCH --job-name=resnet on birds
#SBATCH --gpus-per-node=a100:1
#SBATCH --time=1-00:00:00
module load python/3.11 cuda/12.2
source /home/ada/birds/.venv/bin/activate
exec python -m runyard.node.agent
"""
ENVIRONMENT = {
    "kind": "venv",
    "path": "/home/ada/birds/.venv",
    "modules": ["python/3.11", "cuda/12.2"],
    "variables": {"OMP_NUM_THREADS": "8"},
    "profile": "narval",
}


def write_logs(yard: Yard, job: str = "48213") -> Path:
    """What Slurm's tasks wrote, where the server sees it; the pattern of the files."""
    folder = yard.home.path / "job logs"
    folder.mkdir(exist_ok=True)
    for task in range(4):
        epochs = [f"trial {task}: epoch {epoch} loss {2 / (epoch + 1):.3f}" for epoch in range(12)]
        words = [f"node ng3020{task}, 1 GPU (a100)", *epochs]
        if task == 2:
            words.append("\x1b[31mRuntimeError: CUDA out of memory\x1b[0m")
        (folder / f"{job}_{task}.log").write_text("\n".join(words) + "\n")
    return folder / "%A_%a.log"


def record_jobs(yard: Yard, sweep: Mapping[str, Any]) -> None:
    """Jobs in every state, as commands on a login node tell of them."""
    now = time.time()
    seen = str(write_logs(yard))
    asked = {
        "gpus": 1,
        "gpu_type": "a100",
        "cpus": 8,
        "memory": 32_000,
        "time": 86_400,
        "partition": "gpu",
    }
    jobs: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (
            {
                "job_id": "48213",
                "kind": "agents",
                "name": "resnet on birds",
                "array": "0-7%4",
                "tasks": 8,
                "sweep": sweep["key"],
                "log_pattern": seen,
                "script": SCRIPT,
                "environment": ENVIRONMENT,
            },
            {
                "states": {"RUNNING": 4, "PENDING": 4},
                "reason": "JobArrayTaskLimit: as many of its tasks run as the array lets at once",
                "started_at": now - 5400,
                "starts_at": now + 3600,
            },
        ),
        (
            {"job_id": "48220", "kind": "agents", "name": "fast and good", "tasks": 1},
            {
                "states": {"PENDING": 1},
                "reason": "Priority: others are before it in the queue; it starts in its turn",
                "starts_at": now + 7200,
            },
        ),
        (
            {"job_id": "48101", "kind": "agents", "name": "baseline", "tasks": 2},
            {
                "states": {"COMPLETED": 2},
                "started_at": now - 90_000,
                "ended_at": now - 86_400,
                "used": {
                    "longest_seconds": 3600,
                    "memory_peak": 9_000_000_000,
                    "cpu_seconds": 14_000,
                    "cpu_seconds_held": 57_600,
                    "gpu_use": 0.62,
                },
            },
        ),
        (
            {"job_id": "48050", "kind": "shell", "name": "shell", "tasks": 1},
            {
                "states": {"TIMEOUT": 1},
                "started_at": now - 200_000,
                "ended_at": now - 180_000,
                "used": {"longest_seconds": 86_400, "memory_peak": 31_000_000_000},
            },
        ),
    ]
    for new, news in jobs:
        made = yard.connection.post(
            "/api/jobs",
            {
                "cluster": "narval",
                "folder": "/scratch/ada/.runyard/jobs/x1",
                "log_pattern": "/scratch/ada/.runyard/jobs/x1/logs/%A_%a.log",
                "asked": asked,
                "submitted_at": now - 7200
                if "48213" in new["job_id"] or "48220" in new["job_id"]
                else now - 100_000,
                **new,
            },
        )
        yard.connection.post(
            "/api/jobs/news", {"news": [{"key": made["key"], "polled_at": now - 30, **news}]}
        )
