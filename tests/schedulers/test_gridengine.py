"""Grid Engine's words, read and written; no Grid Engine is needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from runyard.clusters.profile import Profile
from runyard.config.request import Request, Resources
from runyard.errors import ConfigError
from runyard.schedulers.errors import NoAccounting, SchedulerSilent
from runyard.schedulers.gridengine.accounting import find_marked, flush_seconds, records
from runyard.schedulers.gridengine.cell import cluster_name
from runyard.schedulers.gridengine.commands import Answer
from runyard.schedulers.gridengine.header import header, header_lines, job_name, renumber
from runyard.schedulers.gridengine.inside import Job
from runyard.schedulers.gridengine.partitions import read_limits, read_queues
from runyard.schedulers.gridengine.queue import poll, read_rows
from runyard.schedulers.gridengine.sending import command, mark_of, reply_of, with_path
from runyard.schedulers.gridengine.settings import SiteNames
from runyard.schedulers.gridengine.states import ended_state, read_letters
from runyard.schedulers.gridengine.variables import clean_environment
from runyard.schedulers.header_request import HeaderRequest, ScriptPlace
from runyard.schedulers.jobs import Batch
from runyard.schedulers.partitions import Count
from runyard.schedulers.resources import Ruled


def ruled(**changes: object) -> Ruled:
    """What is asked for: nothing but an hour, and these."""
    values: dict[str, object] = {
        "gpus": None, "gpu_type": None, "cpus": 1, "memory": None, "time": 3600.0,
        "asks_time": True, "partition": None, "account": None, "qos": None, "options": {},
    }  # fmt: skip
    return Ruled(**{**values, **changes})  # type: ignore[arg-type]


def lines_of(name: str, asked: Ruled, **options: Any) -> list[str]:
    profile = Profile(gridengine=options.pop("site", SiteNames()))
    of_header = {key: options.pop(key) for key in ("requeue", "more") if key in options}
    made = header(HeaderRequest(name, Request(), profile, asked, "jobs", **of_header))
    return header_lines(made, ScriptPlace(**{"log": "/l", "folder": Path("/f"), **options}))


def test_a_request_becomes_lines_of_qsub() -> None:
    lines = lines_of(
        "train",
        ruled(gpus=4, cpus=4, memory=8000, account="vision", partition="gpu.q",
              options={"mail": "END,FAIL", "mail_to": "me@lab"}),
        log="/scratch/logs/%A_%a.log",
        folder=Path("/scratch/job"),
        tasks=20,
        at_once=5,
        more=["-notify", "-l ssd=1"],
    )  # fmt: skip
    assert lines == [
        "#$ -N train",
        "#$ -r n",
        "#$ -P vision",
        "#$ -q gpu.q",
        "#$ -pe smp 4",
        "#$ -l h_rt=3600,h_vmem=2000M,gpu=1",
        "#$ -m ea",
        "#$ -M me@lab",
        "#$ -notify",
        "#$ -l ssd=1",
        "#$ -t 1-20",
        "#$ -tc 5",
        "#$ -o /scratch/logs/$JOB_ID_$TASK_ID.log",
        "#$ -j y",
        "#$ -wd /scratch/job",
    ]


def test_what_nobody_asked_for_is_left_out_and_sites_have_names_of_their_own() -> None:
    assert lines_of("1st", ruled(asks_time=False), requeue=True) == [
        "#$ -N j-1st", "#$ -r y", "#$ -o /l", "#$ -j y", "#$ -wd /f",
    ]  # fmt: skip
    site = SiteNames(cores="threads", memory="mem_free", gpu="ngpus")
    lines = lines_of("a", ruled(gpus=1, cpus=2, memory=4000), site=site)
    assert lines[2:4] == ["#$ -pe threads 2", "#$ -l h_rt=3600,mem_free=2000M,ngpus=1"]


def test_several_nodes_are_refused_in_one_sentence() -> None:
    with pytest.raises(ConfigError, match="have one node and one task each"):
        header(
            HeaderRequest("a", Request(resources=Resources(nodes=2)), Profile(), ruled(), "jobs")
        )


def test_a_part_of_an_array_is_the_same_script_with_another_number() -> None:
    text = "#!/bin/bash\n#$ -t 1-80\n#$ -tc 8\necho -t 1-80\n"
    assert renumber(text, 5) == text.replace("#$ -t 1-80", "#$ -t 1-5")


@pytest.mark.parametrize(
    ("letters", "name"),
    [
        ("qw", "PENDING"), ("hqw", "PENDING"), ("Eqw", "SPECIAL_EXIT"), ("r", "RUNNING"),
        ("t", "RUNNING"), ("hr", "RUNNING"), ("dr", "COMPLETING"), ("dt", "COMPLETING"),
        ("s", "SUSPENDED"), ("tS", "SUSPENDED"), ("hRwq", "REQUEUED"), ("Rr", "RUNNING"),
        ("", "UNKNOWN"), ("x", "UNKNOWN"),
    ],
)  # fmt: skip
def test_letters_of_the_queue(letters: str, name: str) -> None:
    assert read_letters(letters).name == name


@pytest.mark.parametrize(
    ("failed", "exit_status", "over_time", "over_memory", "name"),
    [
        (0, 0, False, False, "COMPLETED"), (0, 3, False, False, "FAILED"),
        (0, 137, False, False, "FAILED"), (30, 100, False, False, "FAILED"),
        (100, 137, False, False, "CANCELLED"), (100, 140, False, False, "CANCELLED"),
        (100, 137, True, False, "TIMEOUT"), (37, 137, False, False, "TIMEOUT"),
        (100, 137, False, True, "OUT_OF_MEMORY"), (19, 0, False, False, "NODE_FAIL"),
        (26, 0, False, False, "LAUNCH_FAILED"), (8, 1, False, False, "LAUNCH_FAILED"),
    ],
)  # fmt: skip
def test_how_a_job_ended(
    failed: int, exit_status: int, over_time: bool, over_memory: bool, name: str
) -> None:
    state = ended_state(failed, exit_status, over_time=over_time, over_memory=over_memory)
    assert state.name == name


def line(job: int, **changes: object) -> str:
    """A record of the accounting file."""
    values: dict[int, object] = {
        0: "main.q", 1: "node1", 2: "users", 3: "ada", 4: "train", 5: job, 6: "sge", 7: 0, 8: 100,
        9: 110, 10: 170, 11: 0, 12: 0, 13: 60, 31: "NONE", 32: "defaultdepartment", 33: "NONE",
        34: 2, 35: 0, 36: "58.500000", 39: "-l h_rt=300,h_vmem=1G -pe smp 2", 41: "NONE",
        42: "1048576.000000",
    }  # fmt: skip
    places = {"account": 6, "failed": 11, "exit_status": 12, "end": 10, "task": 35, "name": 4}
    values |= {places[name]: value for name, value in changes.items()}
    return ":".join(str(values.get(place, 0)) for place in range(45))


@pytest.fixture
def cell(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "default/common").mkdir(parents=True)
    return {"SGE_ROOT": str(tmp_path), "SGE_CELL": "default"}


def account(cell: Mapping[str, str], *lines: str) -> None:
    text = "\n".join(["# Version: 8.1.9", *lines]) + "\n"
    (Path(cell["SGE_ROOT"]) / "default/common/accounting").write_text(text)


def test_records_of_many_jobs_are_read_at_once(cell: dict[str, str]) -> None:
    account(cell, line(1), line(2, task=2, exit_status=1), line(2, task=1), line(3))
    jobs = records(["1", "2", "99"], cell)
    assert {job_id: [task.which for task in tasks] for job_id, tasks in jobs.items()} == {
        "1": ["1"],
        "2": ["2_1", "2_2"],
    }
    (record,) = jobs["1"]
    assert (record.state.name, record.start, record.end, record.seconds) == (
        "COMPLETED", 110.0, 170.0, 60.0,
    )  # fmt: skip
    assert (record.limit, record.cpus, record.cpu_seconds) == (300.0, 2, 58.5)
    assert (record.memory_asked, record.memory_peak) == (2 << 30, 1 << 20)
    assert jobs["2"][1].state.name == "FAILED"


def test_of_a_job_that_was_run_again_the_last_record_counts(cell: dict[str, str]) -> None:
    account(cell, line(1, exit_status=1), line(1), line(1, failed=25), line(2, failed=25))
    jobs = records(["1", "2"], cell)
    assert [task.state.name for task in jobs["1"]] == ["COMPLETED"]
    assert "2" not in jobs


def test_a_mark_is_found_in_the_account_or_the_name(cell: dict[str, str]) -> None:
    mark = mark_of("key")
    account(cell, line(1, account=mark), line(2), line(3, name=f"train.{mark}"))
    assert sorted(find_marked(mark, cell)) == ["1", "3"]


def test_how_late_a_record_may_be(cell: dict[str, str], tmp_path: Path) -> None:
    """As `qconf` prints a long value."""
    said = r"""max_jobs 0
reporting_params             accounting=true reporting=false \
                             accounting_flush_time=00:00:00 flush_time=00:00:15
finished_jobs                100"""
    (tmp_path / "qconf").write_text(f"#!/bin/sh\ncat <<'E'\n{said}\nE\n")
    (tmp_path / "qconf").chmod(0o755)
    assert flush_seconds({**cell, "PATH": f"{tmp_path}:/usr/bin:/bin"}) == 0
    (tmp_path / "qconf").write_text("#!/bin/sh\necho max_jobs 0\n")
    assert flush_seconds({**cell, "PATH": f"{tmp_path}:/usr/bin:/bin"}) == 15


def test_without_the_file_there_is_no_accounting(cell: dict[str, str]) -> None:
    with pytest.raises(NoAccounting, match="No such file"):
        records(["1"], cell)


def test_a_cell_is_called_what_its_files_say(cell: dict[str, str]) -> None:
    common = Path(cell["SGE_ROOT"]) / "default/common"
    assert cluster_name(cell) is None
    (common / "act_qmaster").write_text("head\n")
    assert cluster_name(cell) == "head"
    (common / "cluster_name").write_text("yard\n")
    assert cluster_name(cell) == "yard"


def test_a_job_is_sent_with_its_shell_its_name_and_its_mark() -> None:
    words = command(Batch("2 trials", "#!/bin/bash\necho", "key", after="7"))
    assert words == [
        "qsub", "-terse", "-V", "-S", "/bin/bash", "-A", mark_of("key"), "-N", "j-2-trials",
        "-hold_jid", "7",
    ]  # fmt: skip
    own = "#!/usr/bin/env zsh\n#$ -N mine -A lab\n"
    assert command(Batch("x", own, "key"))[3:] == ["-S", "/bin/zsh", "-N", f"mine.{mark_of('key')}"]
    assert command(Batch("x", "#!/bin/sh\n#$ -S /bin/ksh\n", "k"))[3] == "-A"
    assert job_name("a/b:c") == "a-b-c"


def test_answers_of_qsub() -> None:
    assert reply_of(Answer(0, "Welcome!\n17.1-80:1\n", ""), "a").job_id == "17"
    assert reply_of(Answer(25, "", "job rejected: Only 10 jobs are allowed"), "a").outcome == "full"
    refused = reply_of(Answer(1, "", 'Unable to run job: unknown resource "gpus"'), "a")
    assert refused.outcome == "refused"
    assert refused.error is not None
    assert refused.error.mend == "`qconf -sc` lists the resources that -l can name"
    lost = reply_of(Answer(1, "", "error: commlib error: got read error"), "a")
    assert lost.outcome == "unknown"
    assert isinstance(lost.error, SchedulerSilent)
    assert reply_of(Answer(0, "hello", ""), "a").outcome == "refused"


def test_a_job_inherits_nothing_of_the_job_that_sent_it() -> None:
    shell = {"HOME": "/h", "SGE_ROOT": "/sge", "WANDB_API_KEY": "k", "TMPDIR": "/t", "QUEUE": "a"}
    assert clean_environment(shell) == {
        "HOME": "/h", "SGE_ROOT": "/sge", "TMPDIR": "/t", "QUEUE": "a",
    }  # fmt: skip
    inside = {**shell, "JOB_ID": "1", "SGE_TASK_ID": "undefined", "BASH_FUNC_x%%": "() { :; }"}
    assert clean_environment(inside) == {"HOME": "/h", "SGE_ROOT": "/sge"}


def test_what_a_job_knows_of_itself(tmp_path: Path) -> None:
    assert not Job({"JOB_ID": "of another program"}).is_job
    alone = Job({"JOB_ID": "5", "SGE_TASK_ID": "undefined", "HOSTNAME": "n1"})
    assert (alone.name, alone.task, alone.slots, alone.hosts()) == ("5", None, 1, ["n1"])
    hosts = tmp_path / "hosts"
    hosts.write_text("n1 2 main.q@n1 UNDEFINED\nn2 2 main.q@n2 UNDEFINED\n")
    task = Job(
        {
            "JOB_ID": "5",
            "SGE_TASK_ID": "3",
            "NSLOTS": "4",
            "NHOSTS": "2",
            "PE_HOSTFILE": str(hosts),
            "RESTARTED": "1",
        }
    )
    assert (task.name, task.slots, task.hosts(), task.restarts) == ("5_3", 4, ["n1", "n2"], 1)
    assert (task.nodes, task.first_node()) == (2, "n1")


def job(number: int, state: str, letters: str, more: str = "") -> str:
    return (
        f'<job_list state="{state}"><JB_job_number>{number}</JB_job_number>'
        f"<state>{letters}</state>{more}</job_list>"
    )


QUEUE = f"""<?xml version='1.0'?>
<job_info><queue_info>
{
    job(
        7,
        "running",
        "r",
        "<JAT_start_time>2026-11-16T18:02:52</JAT_start_time>"
        "<queue_name>main.q@n1</queue_name><tasks>1</tasks>"
        '<hard_request name="h_rt" resource_contribution="0.0">100</hard_request>',
    )
}
</queue_info><job_info>
{job(7, "pending", "qw", "<queue_name></queue_name><tasks>5-9:2,20</tasks>")}
{job(8, "pending", "hqw", "<predecessor_jobs>7</predecessor_jobs>")}
{job(9, "zombie", "z")}
{job(10, "zombie", "z", "<tasks>1-3:1</tasks>")}
</job_info></job_info>"""


def test_the_queue_is_read_by_its_xml() -> None:
    running, array, follows, *finished = read_rows(ElementTree.fromstring(QUEUE))
    tasks = running.tasks()
    assert (tasks.which, tasks.state.name, tasks.nodes) == ("7_1", "RUNNING", "n1")
    assert tasks.start is not None
    assert tasks.end == tasks.start + 100
    waiting = array.tasks()
    assert (waiting.which, waiting.count) == ("7_[5-9:2,20]", 4)
    assert waiting.reason == "Resources"
    assert (follows.tasks().which, follows.tasks().reason) == ("8", "Dependency")
    assert all(row.is_finished for row in finished)


def test_what_left_the_queue_without_a_record_was_cancelled(
    cell: dict[str, str], tmp_path: Path
) -> None:
    account(cell, line(10, task=2), line(11))
    programs = {
        "qstat": f"cat <<'E'\n{QUEUE}\nE",
        "qconf": "echo reporting_params flush_time=0:0:1",
    }
    for name, body in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    jobs = poll(["9", "10", "11", "12"], {**cell, "PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert {job_id: state.states for job_id, state in jobs.items()} == {
        "9": {"CANCELLED": 1},
        "10": {"COMPLETED": 1, "CANCELLED": 2},
        "11": {"COMPLETED": 1},
        "12": {"UNKNOWN": 1},
    }


def test_queues_with_their_hosts_and_limits() -> None:
    hosts = ElementTree.fromstring(
        """<qhost><host name='global'/><host name='n1'>
        <hostvalue name='mem_total'>23.5G</hostvalue>
        <resourcevalue name='gpu' dominance='hc'>2.000000</resourcevalue>
        <queue name='main.q'><queuevalue qname='main.q' name='slots_used'>1</queuevalue>
        <queuevalue qname='main.q' name='slots'>4</queuevalue>
        <queuevalue qname='main.q' name='state_string'></queuevalue></queue></host>
        <host name='n2'><hostvalue name='mem_total'>500.0M</hostvalue>
        <queue name='main.q'><queuevalue qname='main.q' name='slots_used'>0</queuevalue>
        <queuevalue qname='main.q' name='slots'>4</queuevalue>
        <queuevalue qname='main.q' name='state_string'>au</queuevalue></queue></host></qhost>"""
    )
    queue = read_queues(hosts)["main.q"]
    assert (queue.nodes, queue.slots, queue.gpus) == (Count(0, 2), Count(3, 8), Count(2, 2))
    assert queue.memory == [24064, 500]
    limits = read_limits("qname a.q\nh_rt 24:00:00,[n1=1:0:0]\nqname b.q\nh_rt INFINITY\n")
    assert limits == {"a.q": 86400.0, "b.q": None}


def test_a_login_shell_does_not_take_the_path_away() -> None:
    line = 'PATH="${SGE_O_PATH:-$PATH}"; export PATH'
    assert with_path("#!/bin/bash\n#$ -N a\n") == f"#!/bin/bash\n{line}\n#$ -N a\n"
    assert with_path("true\n") == f"{line}\ntrue\n"
    assert with_path("#!/usr/bin/env python\n") == "#!/usr/bin/env python\n"
