"""The job log as a file: read back, cut off, held by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard.actions.sweeping.job_log import JobLog, read_job_log
from runyard.client.job_log import COLUMNS, Row
from runyard.errors import ConfigError

HEAD = "\t".join(COLUMNS) + "\n"
ROW = Row(7, "node1", 1794727283.395, 12.5, 40, 3, 0, "echo 'a\tb' | cat")


def test_a_row_reads_back_with_tabs_in_its_command(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text(f"{HEAD}{ROW}\n")
    assert read_job_log(file) == {7: ROW}


def test_half_a_row_is_gone_and_the_rest_stays(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text(f"{HEAD}{ROW}\n8\tnode1\t17947")
    assert list(read_job_log(file)) == [7]
    log = JobLog(file)
    assert log.is_ours
    assert not JobLog(file).is_ours
    log.close()
    assert file.read_text() == f"{HEAD}{ROW}\n"
    assert JobLog(file).is_ours


def test_another_file_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text(f"{HEAD}hello\n")
    with pytest.raises(ConfigError, match=r"log:2 is no line of a job log"):
        read_job_log(file)
