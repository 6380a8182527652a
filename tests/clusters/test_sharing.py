"""A file of `runyard doctor --share`: nobody is named in it, and it says all that the site did."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.actions.cluster import sharing
from runyard.actions.cluster.sharing import read_shared, write_shared
from runyard.clusters.asking import Answer
from runyard.clusters.findings import Finding
from runyard.clusters.stand_ins import StandIns
from runyard.config.flags import Flags, FlagValue
from runyard.errors import UsageError
from runyard.schedulers.slurm.doctor.doctor import SlurmDoctor
from runyard.schedulers.slurm.facts import SlurmFacts, gather
from tests.clusters.test_slurm_facts import LIKE_25_05, RECORDED_22_05, SHOW_QOS, answers

NODE = {
    "node": {"host": "gc017.lab.example.edu", "python": "/home/ada/.venv/bin/python3", "job": "77"},
    "folders": {"project folder": True, "state folder": False},
    "local": [{"name": "profile", "path": "/localscratch/ada.77.0", "free": 1 << 40}],
    "server": {"key": True, "answers": False, "url": "http://login3.lab.example.edu:8080",
               "trouble": "no route to 10.21.3.4"},
    "gpus": ["NVIDIA H100, 81559, 9.0"],
}  # fmt: skip


def share(texts: Mapping[str, str | Answer], file: Path, user: str, *findings: Finding) -> str:
    """What such a site's file says."""
    doctor = SlurmDoctor({}, answers(texts), user)  # type: ignore[arg-type]
    write_shared(
        file, "slurm", doctor, ["login3", "login3.lab.example.edu"], findings, NODE,
        containers=["apptainer"], cuda=["cuda/12.2"],
    )  # fmt: skip
    return file.read_text()


def facts_in(file: Path) -> SlurmFacts:
    shared = read_shared(file)
    return gather(shared.ask, shared.user)


def numbers(facts: SlurmFacts) -> object:
    """All but names."""
    return (
        facts.version, facts.array_size, facts.counts_memory, facts.starts_nodes, facts.requeues,
        facts.has_accounting, facts.gpu_types,
        [replace(one, name="", accounts=()) for one in facts.partitions],
        [len(one.accounts) for one in facts.partitions],
        [replace(one, partition="") for one in facts.nodes],
        [replace(one, name="") for one in facts.qos],
    )  # fmt: skip


@pytest.mark.parametrize("texts", [RECORDED_22_05, LIKE_25_05])
def test_a_file_says_what_the_site_said(texts: Mapping[str, str], tmp_path: Path) -> None:
    share(texts, tmp_path / "file", "me")
    assert numbers(facts_in(tmp_path / "file")) == numbers(gather(answers(texts), "me"))  # type: ignore[arg-type]


some_name = st.text("bcdfghjklmnpqrstvwxz", min_size=5, max_size=9)


@given(st.lists(some_name, min_size=7, max_size=7, unique=True))
def test_no_name_is_left(tmp_path_factory: pytest.TempPathFactory, found: list[str]) -> None:
    user, cluster, lab, account, other, person, host = found
    texts = {
        "sinfo --version": "slurm 24.11.5\n",
        "scontrol show config": (
            f"AccountingStorageType = accounting_storage/slurmdbd\nClusterName = {cluster}\n"
            f"AccountingStorageUser = {person}\nSlurmctldHost[0] = {host}(10.1.2.3)\n"
            f"Epilog = /opt/{person}/epilog\nResumeProgram = /opt/{host}/resume\n"
            "SelectTypeParameters = CR_CORE_MEMORY\nMaxArraySize = 4001\n"
        ),
        "scontrol --oneliner show partition": (
            f"PartitionName={lab}-gpu AllowGroups={other} AllowAccounts={account},{other} "
            f"Nodes={host}[1-4] Default=NO MaxTime=2-00:00:00 State=UP\n"
            f"PartitionName=gpu-long AllowAccounts=ALL Default=YES Alternate={lab}-gpu State=UP\n"
        ),
        "sinfo --noheader --format=%P|%D|%c|%m|%G": (
            f"{lab}-gpu|4|64|512000|gpu:a100:4\ngpu-long*|2|64|512000|gpu:a100:4\n"
        ),
        SHOW_QOS: (f"normal|1-00:00:00|||00:00:00|cluster\n{lab}|||20|00:02:00|requeue\n"),
        f"sacctmgr -nP show assoc user={user} format=Account": f"{account}\n{other}\n",
    }
    says = f"{lab}-gpu (up to 2d) for {account}; mail {person}@{host}.edu, see /home/{user}/x"
    told = Finding("Slurm", "partitions", "ok", says, f"ssh {host}.{cluster}.edu")
    own = Finding("this project", "runyard.yaml", "ok", f"{person}'s")
    file = tmp_path_factory.mktemp("shared") / "file"
    text = share(texts, file, user, told, own)
    assert not [name for name in found if name in text], text
    facts = facts_in(file)
    assert facts.default_partition == "gpu-long"
    assert numbers(facts) == numbers(gather(answers(texts), user))  # type: ignore[arg-type]
    # One name has one stand-in, wherever it stands.
    own_accounts, (labs, _) = facts.accounts, facts.partitions
    assert own_accounts == labs.accounts
    assert facts.nodes[0].partition == labs.name


def test_what_looks_like_a_name_is_none_in_the_node_either(tmp_path: Path) -> None:
    text = share(LIKE_25_05, tmp_path / "file", "ada")
    for name in ("ada", "gc017", "login3", "example.edu", "10.21", "/home/ada", "77.0"):
        assert name not in text
    node = read_shared(tmp_path / "file").node
    assert node is not None
    assert node["local"][0] == {"name": "profile", "path": "/localscratch/…", "free": 1 << 40}
    assert node["gpus"] == NODE["gpus"]


# What sites print beside it all: machines, plugins and licences of theirs.
OF_A_LAB: dict[str, str | Answer] = {
    "sinfo --version": "slurm 24.11.5-kuhnlab\n",
    "scontrol show config": (
        "AccountingStorageType = accounting_storage/slurmdbd\nAccountingStorageHost = kuhndb\n"
        "AccountingStorageTRES = cpu,mem,node,gres/gpu,gres/gpu:a100,license/kuhnsoft\n"
        "ClusterName = bird\nGresTypes = gpu,kuhndisk\nJobSubmitPlugins = lua,kuhnrules\n"
        "SLURM_VERSION = 24.11.5-kuhnlab\nSlurmctldHost[0] = kuhnctl(10.1.2.3)\n"
        "MaxArraySize = 4001\n"
    ),
    "scontrol --oneliner show partition": (
        "PartitionName=gpu Default=YES MaxTime=2-00:00:00 State=UP "
        "Nodes=a100-kuhn[01-04],kuhnbox,kuhn7 TRES=cpu=64,mem=9G,gres/gpu=4,license/kuhnsoft=2\n"
    ),
    "sinfo --noheader --format=%P|%D|%c|%m|%G": ("gpu*|4|64|512000|gpu:a100:4(S:0-1),kuhndisk:2\n"),
    SHOW_QOS: Answer(
        "", "sacctmgr: error: failed to open persistent connection to host:kuhndb:6819: refused"
    ),
}


@pytest.mark.parametrize(
    "says",
    [
        "job 77 did not run (pending (ReqNodeNotAvail, UnavailableNodes:a100-kuhn[01-03],kuhn7))",
        "Unable to contact slurm controller (kuhnctl:6817)",
        "kuhnbox is drained; so is a100-kuhn02",
        "no route to 2001:db8:77::cafe, and none to fd00::77",
    ],
)
def test_machines_and_resources_of_a_lab_are_left_out(tmp_path: Path, says: str) -> None:
    text = share(OF_A_LAB, tmp_path / "file", "me", Finding("compute nodes", "job", "fail", says))
    assert not re.search("kuhn|cafe|fd00", text), text
    facts = facts_in(tmp_path / "file")
    assert (facts.version, facts.gpu_types) == ("24.11.5", {"a100": 4})
    assert "gres/gpu:a100" in facts.config["AccountingStorageTRES"]
    assert facts.partitions[0].longest == 2 * 86400


def test_folders_with_spaces_are_left_out_as_a_whole(tmp_path: Path) -> None:
    names = StandIns()
    names.folders(["/data/kuhn lab/birds & bees", "/home/gpu/plain"])
    says = "/data/kuhn lab/birds & bees is shared; /data/kuhn lab/birds & bees/.keys can be read"
    shown = names.text(says)
    assert not re.search("kuhn|lab|birds|bees", shown), shown
    assert shown.startswith("/data/… is shared")
    assert names.text("/home/gpu/plain is shared") == "/home/… is shared"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://ada:a!b@proxy/kuhn/x", "https://host1/…"),
        ("http://login3.kuhn.edu:8080/kuhn, then", "http://host1:8080/…, then"),
        ("see https://github.com", "see https://github.com"),
        ("fs:/export/kuhn is full", "fs:/… is full"),
    ],
)
def test_addresses_of_pages_and_of_file_servers(text: str, shown: str) -> None:
    assert StandIns().text(text) == shown


def test_what_was_asked_for_by_name_is_left_out() -> None:
    """Sites' own refusals repeat it."""
    given = {"resources.account": "kuhn", "resources.reservation": "birds-course",
             "resources.extra": ["--comment=for ada", "--nodelist=owl3", "--x"]}  # fmt: skip
    flags = Flags({name: FlagValue(value, "--x") for name, value in given.items()})
    names = sharing._names_here([], None, flags, profile="kuhn-cluster")
    shown = names.text("Account kuhn may not use owl3 in birds-course (for ada): see kuhn-cluster")
    assert shown == "Account account1 may not use (hidden) in reservation1 ((hidden)): see cluster1"


def test_secrets_and_full_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_API_TOKEN", "a1b2c3d4e5f6")
    monkeypatch.setattr(sharing, "_full_name", lambda: ["Ada Lovelace", "Ada", "Lovelace"])
    names = sharing._names_here([], None)
    shown = names.text("the token a1b2c3d4e5f6 of Ada Lovelace; Lovelace's; at most 3")
    assert shown == "the token (hidden) of (hidden); (hidden)'s; at most 3"


def test_a_user_with_a_common_name_changes_no_other_word() -> None:
    names = StandIns()
    assert names.of("user", "max") == "user1"
    assert names.text("max 3 jobs") == "max 3 jobs"
    assert names.of("partition", "gpu-h100-long") == "gpu-h100-long"
    assert names.of_all("account", "ALL,def-ada,MAX") == "ALL,account1,account2"


def test_a_file_that_is_something_else(tmp_path: Path) -> None:
    for content in ("", "[]", "{}", json.dumps({"scheduler": "slurm", "asked": [3]}),
                    json.dumps({"scheduler": "lsf", "asked": []})):  # fmt: skip
        (tmp_path / "file").write_text(content)
        with pytest.raises(UsageError, match="is no file of `runyard doctor --share`"):
            read_shared(tmp_path / "file")
    with pytest.raises(UsageError, match="cannot read"):
        read_shared(tmp_path / "missing")
