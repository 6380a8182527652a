"""What every scheduler must pass. A test class inherits from `SchedulerConformance` and gives one
fixture, `bench`.

    class TestSlurm(SchedulerConformance):
        @pytest.fixture
        def bench(self, tmp_path):
            return Bench(Slurm(bench_environ(os.environ)), slurm_script, tmp_path)
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from runyard.schedulers.errors import NoAccounting
from runyard.schedulers.jobs import Batch, JobState
from runyard.schedulers.protocol import Scheduler

_PATH = "/runyard-bench"
# A program that prints its JobEnvironment.
_LOOK_INSIDE = """
import json
from runyard.schedulers.inside import this_job
job = this_job()
print(json.dumps({
    "job_id": job.job_id, "task": job.task, "name": job.name, "own_id": job.own_id,
    "node": job.node, "nodes": job.nodes, "first_node": job.first_node(), "rank": job.rank,
    "tasks": job.tasks, "end": job.find_end(), "folder": job.folder, "restarts": job.restarts,
}))
"""


def bench_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The shell that sends the jobs: some tests ask what of it they have."""
    path = f"{_PATH}:{environ['PATH']}"
    return {**environ, "RUNYARD_BENCH": "kept", "WANDB_API_KEY": "secret", "PATH": path}


class WriteScript(Protocol):
    """A script of this scheduler's that runs `body` in sh and writes its output to `log`.

    `tasks`: as an array of so many, whose output goes to one file or several that begin with `log`.
    """

    def __call__(self, body: str, log: Path, tasks: int | None) -> str: ...


@dataclass
class Bench:
    """A scheduler to be tried, and how scripts are written for it."""

    scheduler: Scheduler
    write_script: WriteScript
    folder: Path
    seconds: float = 60.0
    """How long a short job may take from being sent to its end."""
    _count: int = field(default=0, init=False)

    def batch(self, body: str, tasks: int | None = None) -> Batch:
        self._count += 1
        log = self.folder / f"job-{self._count}.log"
        key = f"{self.folder}\n{self._count}"
        return Batch(f"bench-{self._count}", self.write_script(body, log, tasks), key)

    def send(self, batch: Batch) -> str:
        reply = self.scheduler.submit(batch)
        assert reply.outcome == "taken", reply
        return reply.job_id

    def output(self) -> str:
        """Of the last job."""
        files = sorted(self.folder.glob(f"job-{self._count}.log*"))
        return "".join(file.read_text() for file in files)

    def wait(self, ids: Iterable[str], until: Callable[[JobState], bool]) -> dict[str, JobState]:
        wanted = list(ids)
        end = time.monotonic() + self.seconds
        while True:
            jobs = self.scheduler.poll(wanted)
            if all(until(job) for job in jobs.values()):
                return jobs
            assert time.monotonic() < end, f"still {jobs}"
            time.sleep(0.2)

    def look_inside(self, tasks: int | None = None) -> tuple[JobState, list[dict[str, Any]]]:
        """A job while it runs, and what each of its tasks knows of itself."""
        program = f"{shlex.quote(sys.executable)} -c {shlex.quote(_LOOK_INSIDE)}"
        job_id = self.send(self.batch(f"{program}; {self.held}", tasks=tasks))
        running = self.wait([job_id], _is_running)[job_id]
        self.release()
        assert self.ends(job_id).states == {"COMPLETED": tasks or 1}, self.output()
        return running, [json.loads(line) for line in self.output().splitlines()]

    @property
    def held(self) -> str:
        """A command that goes on until `release`."""
        return f"until [ -e {shlex.quote(str(self._gate))} ]; do sleep 0.2; done"

    def release(self) -> None:
        self._gate.touch()

    @property
    def _gate(self) -> Path:
        return self.folder / "released"

    def ends(self, job_id: str) -> JobState:
        return self.wait([job_id], lambda job: not job.is_open)[job_id]


def _is_running(job: JobState) -> bool:
    return "RUNNING" in job.states


class SchedulerConformance:
    def test_a_job_runs_and_its_output_is_where_the_script_says(self, bench: Bench) -> None:
        job = bench.ends(bench.send(bench.batch("echo out; echo err >&2")))
        assert job.states == {"COMPLETED": 1}
        assert sorted(bench.output().split()) == ["err", "out"]

    def test_a_program_that_fails_is_a_job_that_failed(self, bench: Bench) -> None:
        job = bench.ends(bench.send(bench.batch("exit 3")))
        assert job.states == {"FAILED": 1}
        assert all(tasks.state.is_bad for tasks in job.tasks)

    def test_a_key_that_may_be_there_is_taken_once(self, bench: Bench) -> None:
        batch = bench.batch(bench.held)
        first = bench.send(batch)
        again = bench.scheduler.submit(replace(batch, may_be_there=True))
        assert (again.outcome, again.job_id) == ("taken", first)
        other = bench.scheduler.submit(replace(batch, key="another", may_be_there=True))
        assert other.job_id != first
        bench.scheduler.cancel([first, other.job_id])

    def test_many_are_asked_for_at_once_and_an_unknown_one_is_no_error(self, bench: Bench) -> None:
        ids = [bench.send(bench.batch("sleep 60")) for _ in range(3)]
        jobs = bench.scheduler.poll([*ids, "99999999"])
        assert list(jobs) == [*ids, "99999999"]
        assert all(jobs[job_id].is_open for job_id in ids)
        assert jobs["99999999"].tasks == ()
        assert bench.scheduler.poll([]) == {}
        bench.scheduler.cancel(ids)

    def test_a_job_that_runs_is_cancelled_and_nothing_of_it_goes_on(self, bench: Bench) -> None:
        # Its processes may be told one after the other: the shell has a moment to hear of it too.
        job_id = bench.send(bench.batch("sleep 60 & sleep 60; sleep 10; echo went on"))
        running = bench.wait([job_id], _is_running)[job_id]
        assert running.tasks[0].start is not None
        bench.scheduler.cancel([job_id])
        assert bench.ends(job_id).states == {"CANCELLED": 1}
        assert "went on" not in bench.output()

    def test_to_cancel_what_has_ended_or_was_never_there_is_no_error(self, bench: Bench) -> None:
        job_id = bench.send(bench.batch("true"))
        bench.ends(job_id)
        bench.scheduler.cancel([job_id, "99999999"])
        assert bench.scheduler.poll([job_id])[job_id].states == {"COMPLETED": 1}

    def test_only_what_waits_is_cancelled_where_it_is_asked(self, bench: Bench) -> None:
        first = bench.send(bench.batch(bench.held))
        second = bench.send(replace(bench.batch("true"), after=first))
        bench.wait([first], _is_running)
        bench.scheduler.cancel([first, second], only_waiting=True)
        assert bench.ends(second).states == {"CANCELLED": 1}
        bench.release()
        assert bench.ends(first).states == {"COMPLETED": 1}

    def test_a_job_waits_for_the_one_before_it_however_that_ends(self, bench: Bench) -> None:
        first = bench.send(bench.batch(f"{bench.held}; exit 1"))
        second = bench.send(replace(bench.batch("true"), after=first))
        assert bench.scheduler.poll([second])[second].states == {"PENDING": 1}
        bench.release()
        jobs = bench.wait([first, second], lambda job: not job.is_open)
        assert (jobs[first].states, jobs[second].states) == ({"FAILED": 1}, {"COMPLETED": 1})
        ended, started = jobs[first].tasks[0].end, jobs[second].tasks[0].start
        assert ended is not None
        assert started is not None
        # Some schedulers tell whole seconds.
        assert started >= ended - 1

    def test_an_array_has_as_many_tasks_as_it_was_asked_for(self, bench: Bench) -> None:
        job_id = bench.send(bench.batch("echo task", tasks=3))
        job = bench.ends(job_id)
        assert job.states == {"COMPLETED": 3}
        assert {tasks.which for tasks in job.tasks} == {f"{job_id}_{task}" for task in (1, 2, 3)}
        assert bench.output().split() == ["task"] * 3

    def test_one_task_of_an_array_is_cancelled(self, bench: Bench) -> None:
        job_id = bench.send(bench.batch(bench.held, tasks=2))
        bench.wait([job_id], lambda job: job.states == {"RUNNING": 2})
        bench.scheduler.cancel([f"{job_id}_2"])
        # One that is being ended could still end by itself where the gate opens too early.
        gone = ({"RUNNING": 1}, {"RUNNING": 1, "CANCELLED": 1})
        bench.wait([job_id], lambda job: job.states in gone)
        bench.release()
        assert bench.ends(job_id).states == {"COMPLETED": 1, "CANCELLED": 1}

    def test_a_job_has_the_shells_variables_and_not_its_key(self, bench: Bench) -> None:
        bench.ends(bench.send(bench.batch('echo "$RUNYARD_BENCH:$WANDB_API_KEY"')))
        assert bench.output().strip() == "kept:"

    def test_a_job_has_the_shells_path(self, bench: Bench) -> None:
        bench.ends(bench.send(bench.batch('echo "$PATH"')))
        assert bench.output().split(":")[0] == _PATH

    def test_a_job_knows_itself(self, bench: Bench) -> None:
        state, (job,) = bench.look_inside()
        assert [job["job_id"], job["name"], job["own_id"]] == [state.job_id] * 3
        assert job["task"] is None
        assert job["node"]
        assert (job["nodes"], job["rank"], job["tasks"], job["restarts"]) == (1, 0, 1, 0)
        assert job["first_node"] in (None, job["node"])
        assert job["folder"] is None or job["folder"].startswith("/")
        end = state.tasks[0].end
        assert (job["end"] is None) == (end is None)
        # Some schedulers tell whole seconds.
        assert end is None or abs(job["end"] - end) <= 1

    def test_a_task_of_an_array_knows_itself(self, bench: Bench) -> None:
        state, tasks = bench.look_inside(tasks=2)
        assert {task["job_id"] for task in tasks} == {state.job_id}
        assert sorted(task["task"] for task in tasks) == ["1", "2"]
        assert {task["name"] for task in tasks} == {f"{state.job_id}_1", f"{state.job_id}_2"}
        assert len({task["own_id"] for task in tasks}) == 2

    def test_of_an_array_the_tasks_that_wait_are_cancelled(self, bench: Bench) -> None:
        tasks = bench.scheduler.partitions()[0].cpus.total + 3
        job_id = bench.send(bench.batch(bench.held, tasks=tasks))
        bench.wait([job_id], lambda job: {"RUNNING", "PENDING"} <= job.states.keys())
        bench.scheduler.cancel([job_id], only_waiting=True)
        bench.wait([job_id], lambda job: "PENDING" not in job.states)
        bench.release()
        states = bench.ends(job_id).states
        assert set(states) == {"COMPLETED", "CANCELLED"}
        # Slurm shows those that were cancelled while they waited as one.
        assert states["COMPLETED"] < tasks

    def test_what_was_tried_out_is_not_sent(self, bench: Bench) -> None:
        assert bench.scheduler.try_out(bench.batch("true")).outcome == "taken"
        assert bench.output() == ""

    def test_a_job_of_the_past_has_a_record_where_records_are_kept(self, bench: Bench) -> None:
        job_id = bench.send(bench.batch("true"))
        bench.ends(job_id)
        try:
            records = bench.scheduler.records([job_id, "99999999"])
        except NoAccounting:
            return
        assert set(records) <= {job_id}

    def test_there_is_somewhere_to_run_and_a_name_for_it(self, bench: Bench) -> None:
        assert bench.scheduler.is_here()
        assert bench.scheduler.cluster_name()
        partitions = bench.scheduler.partitions()
        assert partitions
        assert partitions[0].nodes.total > 0
        assert partitions[0].cpus.total > 0
