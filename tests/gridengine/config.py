"""The files of a cell: what its daemons read before they start, and what `qconf` is given then."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LIBRARY = Path("/usr/lib/gridengine")
SHARE = Path("/usr/share/gridengine")
CELL = "default"
QUEUE = "main.q"
SLOTS = 4
_LIMITS = ("rt", "cpu", "fsize", "data", "stack", "core", "rss", "vmem")


@dataclass(frozen=True)
class CellSite:
    """Where a cell lives on this machine."""

    folder: Path
    host: str
    user: str
    master_port: int
    exec_port: int

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def common(self) -> Path:
        return self.root / CELL / "common"

    @property
    def spool(self) -> Path:
        return self.folder / "spool"

    @property
    def variables(self) -> dict[str, str]:
        return {
            "SGE_ROOT": str(self.root),
            "SGE_CELL": CELL,
            "SGE_QMASTER_PORT": str(self.master_port),
            "SGE_EXECD_PORT": str(self.exec_port),
        }


def write_files(site: CellSite) -> None:
    """What the daemons need before they start."""
    for folder in (site.common, site.spool / "qmaster" / "job_scripts", site.spool / "exec"):
        folder.mkdir(parents=True)
    (site.folder / "tmp").mkdir()
    (site.root / "util").symlink_to(SHARE / "util")
    (site.common / "bootstrap").write_text(_bootstrap(site))
    (site.common / "act_qmaster").write_text(f"{site.host}\n")
    (site.common / "cluster_name").write_text(f"test{site.master_port}\n")
    # Machines often call 127.0.0.1, by which they know themselves, localhost too. Grid Engine wants
    # one name for a host.
    (site.common / "host_aliases").write_text(f"{site.host} localhost\n")
    (site.folder / "configuration").write_text(configuration(site))


def configuration(site: CellSite) -> str:
    """The packaged one; root may have jobs, and accounting is written at once.

    No shell reads the profile of who runs the tests: a job that is killed there may leave a lock
    (pyenv's, for one) on which all later ones wait.
    """
    changes = {
        "login_shells": "none",
        "execd_spool_dir": str(site.spool / "exec"),
        "mailer": "/bin/true",
        "min_uid": "0",
        "min_gid": "0",
        "reporting_params": "accounting=true reporting=false accounting_flush_time=00:00:00 "
        "flush_time=00:00:15 joblog=false sharelog=00:00:00",
        "load_report_time": "00:00:05",
    }
    return _changed((SHARE / "default-configuration").read_text(), changes)


def scheduling(text: str) -> str:
    """`qconf -ssconf`, with a scheduler that looks every second."""
    changes = {
        "schedule_interval": "0:0:1",
        "flush_submit_sec": "1",
        "flush_finish_sec": "1",
        "job_load_adjustments": "NONE",
        "load_adjustment_decay_time": "0:0:0",
    }
    return _changed(text, changes)


def queue_file(site: CellSite) -> str:
    """The one queue, with the settings of `queue_conf(5)` that an administrator would leave."""
    settings = {
        "qname": QUEUE, "hostlist": site.host, "seq_no": "0", "load_thresholds": "NONE",
        "suspend_thresholds": "NONE", "nsuspend": "1", "suspend_interval": "00:05:00",
        "priority": "0", "min_cpu_interval": "00:05:00", "processors": "UNDEFINED",
        "qtype": "BATCH INTERACTIVE", "ckpt_list": "NONE", "pe_list": "smp", "rerun": "FALSE",
        "slots": str(SLOTS), "tmpdir": str(site.folder / "tmp"), "shell": "/bin/csh",
        "prolog": "NONE", "epilog": "NONE", "shell_start_mode": "posix_compliant",
        "starter_method": "NONE", "suspend_method": "NONE", "resume_method": "NONE",
        "terminate_method": "NONE", "notify": "00:00:05", "owner_list": "NONE",
        "user_lists": "NONE", "xuser_lists": "NONE", "subordinate_list": "NONE",
        "complex_values": "NONE", "projects": "NONE", "xprojects": "NONE", "calendar": "NONE",
        "initial_state": "default",
        **{f"{kind}_{name}": "INFINITY" for name in _LIMITS for kind in "sh"},
        "h_rt": "24:00:00",
    }  # fmt: skip
    return "".join(f"{name} {value}\n" for name, value in settings.items())


def _bootstrap(site: CellSite) -> str:
    settings = {
        "admin_user": site.user,
        "default_domain": "none",
        "ignore_fqdn": "true",
        "spooling_method": "classic",
        "spooling_lib": "libspoolc",
        "spooling_params": f"{site.common};{site.spool}/qmaster",
        "binary_path": "/usr/sbin",
        "qmaster_spool_dir": f"{site.spool}/qmaster",
        "security_mode": "none",
        "listener_threads": "1",
        "worker_threads": "1",
        "scheduler_threads": "1",
    }
    return "".join(f"{name} {value}\n" for name, value in settings.items())


def _changed(text: str, changes: dict[str, str]) -> str:
    """Lines of `name value`, with other values for some names."""
    lines = []
    for line in text.splitlines():
        name = line.split(maxsplit=1)[0] if line.strip() else ""
        lines.append(f"{name} {changes[name]}" if name in changes else line)
    return "\n".join(lines) + "\n"
