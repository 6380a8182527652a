"""`runyard doctor` on a real cluster, with and without accounting."""

from __future__ import annotations

import getpass
import json
import os
import re
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from runyard.home import Home
from tests.clusters.test_sharing import facts_in, share
from tests.clusters.test_slurm_facts import LIKE_25_05, RECORDED_22_05
from tests.conftest import RunRunyard
from tests.slurm.cluster import ClusterSpec, SlurmCluster
from tests.slurm.plugin import MakeCluster
from tests.slurm.shared_rig import spec_of

pytestmark = pytest.mark.slurm


def states(text: str) -> dict[str, tuple[str, str]]:
    findings = json.loads(text)["findings"]
    return {f"{one['group']}/{one['name']}": (one["state"], one["says"]) for one in findings}


def test_the_doctor_sees_the_cluster_from_outside_and_inside(
    runyard: RunRunyard, state_folder: Home, slurm_cluster: SlurmCluster, tmp_path: Path
) -> None:
    project = tmp_path / "my 'project'"
    project.mkdir()
    (project / "runyard.yaml").write_text("command: python train.py\nresources: {gpus: 1}\n")
    there = {**slurm_cluster.env, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    assert runyard("server", "start").returncode == 0
    done = runyard("doctor", "--job", "--json", "--write", env=there, cwd=project, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    found = states(done.stdout)
    assert found["Slurm/slurm"][0] == "ok"
    assert f"cluster {slurm_cluster.name}" in found["Slurm/slurm"][1]
    assert found["Slurm/partitions"][1] == (
        "main (default, no limit), high (no limit), short (up to 1m)"
    )
    assert found["Slurm/gpus"][1] == "4 fake a node"
    assert found["Slurm/accounting"][1] == "there is a database (sacct)"
    assert found["this project/runyard.yaml"][0] == "ok"
    for name in ("job", "python", "project folder", "state folder", "server"):
        assert found[f"compute nodes/{name}"][0] == "ok", found
    assert "the key is taken" in found["compute nodes/server"][1]
    assert [one.name for one in project.iterdir()] == ["runyard.yaml"]  # Nothing is left behind.

    # The draft is a profile, and the cluster is known by it from now on.
    which = json.loads(runyard("clusters", "which", "--json", env=there).stdout)
    assert which["name"] == slurm_cluster.name
    shown = json.loads(runyard("clusters", "show", "--json", env=there).stdout)
    assert shown["gpus"]["types"]["fake"]["per_node"] == 4
    assert shown["limits"]["by_partition"]["short"]["longest"] == 60
    again = runyard("doctor", "--write", env=there, cwd=project)
    assert again.returncode == 2
    assert "there is a profile" in again.stderr


def test_a_job_that_slurm_refuses_and_one_that_cannot_start(
    runyard: RunRunyard, slurm_cluster: SlurmCluster, tmp_path: Path
) -> None:
    there = slurm_cluster.env
    refused = runyard("doctor", "--job", "-p", "nowhere", "--json", env=there, cwd=tmp_path)
    assert refused.returncode == 1
    state, says = states(refused.stdout)["compute nodes/job"]
    assert state == "fail"
    assert "invalid partition" in says.lower()
    waiting = runyard(
        "doctor", "--job", "--json", "--sbatch=--begin=now+1hour", "--wait", "3s",
        env=there, cwd=tmp_path,
    )  # fmt: skip
    state, says = states(waiting.stdout)["compute nodes/job"]
    assert state == "fail"
    assert "did not run within 3 s" in says
    assert slurm_cluster.run("squeue", "-h", "-n", "runyard-doctor").stdout == ""


def test_ctrl_c_leaves_neither_job_nor_folder(
    state_folder: Home, slurm_cluster: SlurmCluster, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "runyard", "doctor", "--job", "--sbatch=--begin=now+1hour"],
        cwd=project, env={**os.environ, **slurm_cluster.env}, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    said = process.stderr.readline()
    while "pending" not in said:
        assert said, "it ended before its job was waiting"
        said = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=180) == -signal.SIGINT
    process.stderr.close()
    assert list(project.iterdir()) == []
    assert slurm_cluster.run("squeue", "-h", "-n", "runyard-doctor").stdout == ""


def test_without_accounting(
    runyard: RunRunyard, make_slurm_cluster: MakeCluster, tmp_path: Path
) -> None:
    cluster = make_slurm_cluster(ClusterSpec(nodes=1, gpus=0, accounting=False))
    done = runyard("doctor", "--job", "--json", env=cluster.env, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    found = states(done.stdout)
    assert found["Slurm/accounting"][1].startswith("no database")
    assert found["Slurm/gpus"][0] == "warn"
    assert "Slurm/accounts" not in found
    assert found["compute nodes/job"][0] == "ok"


def shown(text: str, *groups: str) -> dict[str, str]:
    """The states of findings; which profile is chosen differs from place to place."""
    findings = states(text).items()
    return {
        name: state
        for name, (state, _) in findings
        if name.startswith(groups) and name != "Slurm/profile"
    }


def test_a_shared_file_names_nobody_and_tells_elsewhere_what_was_told_here(
    runyard: RunRunyard, state_folder: Home, slurm_cluster: SlurmCluster, tmp_path: Path
) -> None:
    there = {**slurm_cluster.env, "SITE_TOKEN": "hidden-from-everybody"}
    words = ("doctor", "--job", "--share", "--json")
    here = runyard(*words, env=there, cwd=tmp_path, timeout=120)
    assert here.returncode == 0, here.stderr
    assert "names left out" in here.stderr
    text = (tmp_path / "runyard-doctor.json").read_text()
    for name in (slurm_cluster.name, socket.gethostname(), getpass.getuser(), str(tmp_path)):
        assert not re.search(rf"\b{re.escape(name)}\b", text), name
    assert "hidden-from-everybody" not in text
    again = runyard(*words, env=there, cwd=tmp_path, timeout=120)
    assert again.returncode == 2
    assert "is there already" in again.stderr

    # Without any Slurm.
    nowhere = {"PATH": str(Path(sys.executable).parent), "XDG_CONFIG_HOME": str(tmp_path / "c")}
    read = ("doctor", "--read", "runyard-doctor.json", "--json", "--write")
    elsewhere = runyard(*read, env=nowhere, cwd=tmp_path)
    assert elsewhere.returncode == 0, elsewhere.stderr
    groups = ("Slurm", "compute nodes")
    assert shown(elsewhere.stdout, *groups) == shown(here.stdout, *groups)
    draft = json.loads(elsewhere.stdout)["draft"]
    profile = json.loads(
        runyard("clusters", "show", Path(draft).stem, "--json", env=nowhere).stdout
    )
    assert profile["gpus"]["types"]["fake"]["per_node"] == 4
    assert profile["limits"]["by_partition"]["short"]["longest"] == 60


@pytest.mark.parametrize("texts", [LIKE_25_05, RECORDED_22_05], ids=["25.05", "22.05"])
def test_a_shared_file_becomes_a_rig_that_says_the_same(
    runyard: RunRunyard, make_slurm_cluster: MakeCluster, tmp_path: Path, texts: dict[str, str]
) -> None:
    share(texts, tmp_path / "site.json", "me")
    site = facts_in(tmp_path / "site.json")
    rig = make_slurm_cluster(spec_of(site))
    done = runyard("doctor", "--share", "rig.json", "--json", env=rig.env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    same = facts_in(tmp_path / "rig.json")
    assert [replace(one, accounts=(), preempt_mode=None) for one in same.partitions] == [
        replace(one, accounts=(), preempt_mode=None) for one in site.partitions
    ]
    assert (same.array_size, same.counts_memory, same.has_accounting) == (
        site.array_size, site.counts_memory, site.has_accounting,
    )  # fmt: skip
    nodes = max(site.nodes, key=lambda group: sum(group.gpus.values()))
    kind = max(nodes.gpus, key=lambda name: nodes.gpus[name])
    assert same.gpu_types == {kind: nodes.gpus[kind]}
    read = runyard("doctor", "--read", "site.json", "--json", cwd=tmp_path)
    told = shown(read.stdout, "Slurm")
    told.pop("Slurm/elastic", None)  # Its nodes are always on.
    assert shown(done.stdout, "Slurm") == told
