"""Target: what Slurm's commands print. No text of theirs is an error; unknown is told as unknown.

The commands are stand-ins: the real ones cannot be made to print what the next release, a site's
greeting or a broken line will look like.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

from runyard.clusters.asking import asker
from runyard.clusters.load import SHIPPED, load_profile
from runyard.clusters.place import Recognised
from runyard.launch.watching import news_of
from runyard.schedulers.doctor import Site
from runyard.schedulers.jobs import used
from runyard.schedulers.slurm import (
    accounting,
    inside,
    job_ends,
    live_usage,
    maintenance,
    name,
    partitions,
    queue,
    sending,
)
from runyard.schedulers.slurm.doctor import probe_job
from runyard.schedulers.slurm.doctor.checks import check_slurm
from runyard.schedulers.slurm.doctor.draft import draft, draft_name
from runyard.schedulers.slurm.facts import gather
from runyard.schedulers.slurm.limits import ask_array_size, is_limit
from runyard.schedulers.slurm.partitions import nodes_of
from runyard.schedulers.slurm.reasons import read_reason
from runyard.schedulers.states import states_text
from tests.clusters.test_slurm_facts import LIKE_25_05, RECORDED_22_05
from tests.fuzz.mutations import as_bytes, expand
from tests.launch.test_maintenance import PRINTED
from tests.launch.test_partitions import NODES, RULES
from tests.launch.test_watching import _job

Case = Mapping[str, str]
_QUEUE = (
    "40|1|RUNNING|2026-03-01T10:00:00|2026-03-01T11:00:00|n1|None\n"
    "40|2|COMPLETED|2026-03-01T10:00:00|2026-03-01T10:10:00|n2|None\n"
    "40|3-4%1|PENDING|2026-03-01T12:00:00|N/A||(ReqNodeNotAvail, UnavailableNodes:n[3-4])\n"
    "40|N/A|CANCELLED by 1000|Unknown|None|n[1-4]|QOSMaxGRESPerUser\n"
)
_ACCOUNTED = (
    "40_1|COMPLETED|0:0|2026-03-01T10:00:00|2026-03-01T10:10:00|600|60|4|00:30:00|1536K|8Gn|"
    "billing=4,cpu=4,gres/gpu:a100=2,mem=8G,node=1|n1|main|birds|2026-03-01T09:00:00|lab\n"
    "40_1.batch|COMPLETED|0:0|2026-03-01T10:00:00|2026-03-01T10:10:00|600||4|00:30.5|3.5G||||||"
    "2026-03-01T09:00:00|lab\n40_[2-4]|PENDING|0:0|Unknown|Unknown|0|UNLIMITED|0|00:00:00||2Gc|"
    "|None assigned|main|birds|2026-03-01T09:00:00|lab\n"
)
_MORE = {
    queue._FIELDS: _QUEUE,
    ",".join(accounting._FIELDS): _ACCOUNTED,
    live_usage._FIELDS: "41|40|1|2026-03-01T10:00:00|4|8000M|n1|gres:gpu:2|birds\n",
    "JobID,AveCPU,MaxRSS,NTasks": "41.batch|00:00:10|9808K|1\n41.0|1-00:01:00|1M|4\n",
    "Partition:80": NODES,
    "reservation": PRINTED,
    "%N|%T|%P": "n1|idle|main*\nn2|drained*|main*\nn3|mixed|short\n",
    "%F|%k|%j": f"40|{sending.mark_of('k')}|birds\n41_2|{sending.mark_of('k')}|birds\n",
    "%F|%Z": "40|/jobs/a\n41|/jobs/b\n",
    job_ends.FIELDS: "40  0  1772355600  1772359200  N/A\n41  2  1772355600  NONE  1772355700\n",
    "%T|%r": "PENDING|Priority\n",
    "account,qos": "lab|normal\nguests|normal,high\n",
    "Account,FairShare": "lab|0.25\nguests|\n",
    "sbatch": "hello from the site\n40;narval\n",
}


def _recorded(texts: Mapping[str, str]) -> dict[str, str]:
    """Texts of `test_slurm_facts`, by what tells a question from the others."""
    keys = {"config": "config", "partition": "partition", "%P|%D|%c|%m|%G": "%P|%D|%c|%m|%G",
            "--version": "--version", "qos": "Name,MaxWall,MaxJobsPerUser,MaxSubmitJobsPerUser",
            "assoc": "Account"}  # fmt: skip
    return {
        answer: text
        for question, text in texts.items()
        for word, answer in keys.items()
        if word in question
    }


class SlurmOutput:
    name = "slurm_output"
    words = (
        "|", "||", "N/A", "(null)", "UNLIMITED", "INFINITE", "Unknown", "None assigned", "%8",
        "1-5",
        "1-5,...", "0-30:0", "3-1", "gpu:", "gpu:a100:", "gpu:2(S:0-1)", "gres/gpu=", "node=0",
        "Gn",
        "18446744073709551614M", "1-", "-1", "365-00:00:00", "2026-02-30T25:61:61",
        "1969-12-31T23:59:59", "9999-12-31T23:59:59", "RUNNING,COMPLETING", "NEW_STATE",
        "by 0", "=",
        "PartitionName=", "Flags=MAINT", "slurm_load_jobs error: Socket timed out", "\udcff\udcfe",
    )  # fmt: skip

    def __init__(self) -> None:
        self._profile = load_profile("generic", folders=[SHIPPED])

    def seeds(self) -> Sequence[Case]:
        newer = {**_MORE, "partition": RULES}
        return ({**_recorded(RECORDED_22_05), **_MORE}, {**newer, **_recorded(LIKE_25_05)},
                dict.fromkeys(_MORE, ""), {"*": "slurm: error: no such option\n"})  # fmt: skip

    def place(self, case: Case) -> str:
        return "Slurm's output"

    def run(self, case: Any) -> None:
        if not isinstance(case, dict):
            return
        texts = {name: expand(text) for name, text in case.items() if isinstance(text, str)}
        with _stand_in(texts):
            self._read_jobs()
            self._read_ends(texts.get(job_ends.FIELDS, texts.get("*", "")))
            self._read_site()

    def _read_jobs(self) -> None:
        env: dict[str, str] = {}
        state = queue.poll(["40"], env)["40"]
        known = accounting.records(["40"], env).get("40", [])
        json.dumps(used(known), allow_nan=False)
        for job in (_job(), _job(array=None, tasks=1, states={"RUNNING": 1})):
            news = news_of(job, state, known, now=100.0)
            json.dumps(news, allow_nan=False)
            states_text(news["states"])
            read_reason(news["reason"])
        live_usage.running_tasks(env)
        sending._find(sending.mark_of("k"), env)
        sending.send("#!/bin/sh\n", "k", environ=env, sleep=lambda _: None)
        inside.Job({"SLURM_JOB_ID": "40"}).cancel_waiting("/jobs/a")
        accounting.fair_shares(env)

    def _read_ends(self, text: str) -> None:
        for row in job_ends.read_rows(text).values():
            json.dumps(row.to_json(), allow_nan=False)
            time.localtime(row.end)

    def _read_site(self) -> None:
        env: dict[str, str] = {}
        partitions.list_partitions(env)
        nodes_of(None, env)
        for planned in maintenance.read_maintenances(
            maintenance._ask(env, "scontrol", "reservation")
        ):
            link = maintenance.shortest_link(planned, 3600.0, 0.0, 0.0)
            maintenance.words_for(planned, 3600.0, link, 0.0)
        ask_array_size(env)
        name._asked_name()
        ask = asker(os.environ)
        probe_job._words(env, "40")
        is_limit(ask("sshare").text)
        facts = gather(ask, "me")
        list(check_slurm(facts, self._profile, Recognised("generic", "a test says so")))
        draft_name(facts, "login1")
        draft(facts, Site("login1", [], [], None))

    def renew(self) -> None:
        return

    def close(self) -> None:
        return


@contextlib.contextmanager
def _stand_in(texts: Mapping[str, str]) -> Iterator[None]:
    def run(words: Sequence[str], **options: Any) -> subprocess.CompletedProcess[Any]:
        line = " ".join(words)
        named = [name for name in texts if name in line] or ["*"]
        said = as_bytes(texts.get(max(named, key=len), ""))
        if options.get("text"):
            # As the real one does it, in whatever way the caller asked for.
            decoded = said.decode(
                options.get("encoding") or "utf-8", options.get("errors") or "strict"
            )
            return subprocess.CompletedProcess(words, 0, decoded, "")
        return subprocess.CompletedProcess(words, 0, said, b"")

    with mock.patch.object(subprocess, "run", run):
        yield
