"""The job that looks from a compute node: its script, its answers, and what becomes of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runyard.clusters.load import SHIPPED, load_profile
from runyard.proof import LOOPBACK
from runyard.schedulers.doctor import Outcome
from runyard.schedulers.slurm.doctor.node_checks import check_nodes
from runyard.schedulers.slurm.doctor.probe_job import marked, probe_script

GENERIC = load_profile("generic", folders=[SHIPPED])


@pytest.fixture
def asked(tmp_path: Path) -> dict[str, Any]:
    folder = tmp_path / "a 'b' \"c\" $d"
    (folder / "mark").mkdir(parents=True)
    (folder / "mark" / "here").touch()
    return {
        "marks": {"project folder": str(folder / "mark"), "scratch": str(tmp_path / "elsewhere")},
        "python": sys.executable,
        "local": "${SLURM_TMPDIR}",
        "outside": [("127.0.0.1", 1)],
        "loopback": LOOPBACK,
        "home": str(tmp_path / "state"),
        "keys": [str(tmp_path / "netrc")],
        "programs": ["sh", "no-such-program"],
    }


def run(script: str, **environ: str) -> None:
    subprocess.run(
        ["sh", "-s"], input=script, text=True, check=True, timeout=60,
        env={"PATH": "/usr/bin:/bin", **environ},
    )  # fmt: skip


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    text = (Path(asked["marks"]["project folder"]) / "answer.json").read_text()
    found: dict[str, Any] = json.loads(text)
    return found


def test_the_script_answers_into_the_folders_that_it_sees(
    asked: dict[str, Any], tmp_path: Path
) -> None:
    run(probe_script(asked, sys.executable, []), SLURM_TMPDIR=str(tmp_path), SLURM_JOB_ID="7")
    found = answer(asked)
    assert found["node"]["same_python"] is True
    assert found["node"]["job"] == "7"
    assert found["folders"] == {"project folder": True, "scratch": False}
    assert found["local"][0]["path"] == str(tmp_path)
    assert found["internet"]["reached"] == []
    assert found["server"] == {"key": False}
    assert found["programs"] == ["sh"]


def test_a_node_without_our_python_uses_its_own(asked: dict[str, Any]) -> None:
    asked["python"] = "/no/such/python"
    run(probe_script(asked, "/no/such/python", []))
    found = answer(asked)
    assert found["node"]["same_python"] is False
    (finding,) = [one for one in _checks(found) if one.name == "python"]
    assert finding.state == "fail"
    assert finding.mend is not None


def test_a_node_without_any_python_says_so(asked: dict[str, Any], tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    (empty / "hostname").symlink_to("/bin/hostname")
    script = probe_script(asked, "/no/such/python", [])
    subprocess.run(
        ["/bin/sh", "-s"], input=script, text=True, check=True, env={"PATH": str(empty)}, timeout=60
    )
    found = answer(asked)
    assert found["node"]["python"] is None
    assert [one.state for one in _checks(found) if one.name == "python"] == ["fail"]


def test_the_key_is_not_sent_to_another_machines_loopback(asked: dict[str, Any]) -> None:
    home = Path(asked["home"])
    home.mkdir()
    (home / "server.json").write_text(
        json.dumps({"url": "http://127.0.0.1:1", "key": "secret-key", "listen": "127.0.0.1",
                    "hostname": "another-machine"})
    )  # fmt: skip
    script = probe_script(asked, sys.executable, [])
    assert "secret-key" not in script
    run(script)
    found = answer(asked)
    assert found["server"]["trouble"] == "loopback"
    assert "secret-key" not in json.dumps(found)
    (finding,) = [one for one in _checks(found) if one.name == "server"]
    assert (finding.state, "--listen" in str(finding.mend)) == ("fail", True)


def test_marks_are_gone_afterwards_whatever_happens(tmp_path: Path) -> None:
    def interrupted() -> None:
        with marked({"a": tmp_path, "b": tmp_path / "missing"}) as marks:
            assert list(marks) == ["a"]
            assert (Path(marks["a"]) / "here").exists()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_nodes_do_not_see_fails() -> None:
    found = {
        "node": {"host": "n1", "python": "p", "same_python": True},
        "folders": {"state folder": False, "project folder": True},
    }
    folders = {"state folder": "/somewhere/state", "project folder": "/somewhere/project"}
    states = {one.name: one for one in check_nodes(Outcome(found, job_id="1"), GENERIC, folders)}
    assert states["state folder"].state == "fail"
    assert "RUNYARD_HOME" in str(states["state folder"].mend)
    assert states["project folder"].state == "ok"
    assert states["internet"].state == "warn"


def test_no_answer_is_one_failure() -> None:
    outcome = Outcome(None, "Slurm did not take the job: Invalid account", "give --account")
    (only,) = check_nodes(outcome, GENERIC, {})
    assert (only.state, only.mend) == ("fail", "give --account")


def _checks(found: dict[str, Any]) -> list[Any]:
    return list(check_nodes(Outcome(found, job_id="7"), GENERIC, {}))
