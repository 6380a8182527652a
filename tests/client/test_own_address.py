"""The address by which others reach this machine: one module works it out, for server and nodes."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

import runyard
from runyard.node.ranks import ports
from runyard.own_address import interface_address, is_loopback, name_with_suffix


def test_a_suffix_goes_behind_the_short_name_and_a_domain_behind_all() -> None:
    assert name_with_suffix("jwb01.juwels", "i") == "jwb01i.juwels"
    assert name_with_suffix("jwb01", "-ib") == "jwb01-ib"
    assert name_with_suffix("gpu7", ".data.site.edu") == "gpu7.data.site.edu"
    assert name_with_suffix("gpu7.site", ".edu") == "gpu7.site.edu"


def test_ranks_read_a_suffix_as_the_server_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "gpu7.site")
    asked: list[str] = []

    def known(name: str, *_: object) -> list[tuple[object, ...]]:
        asked.append(name)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.7", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", known)
    monkeypatch.setattr(socket, "gethostbyname", lambda name: known(name) and "10.0.0.7")
    assert ports.address(None, ".edu") == "gpu7.site.edu"
    assert ports.address(None, "i") == "gpu7i.site"
    assert asked == ["gpu7.site.edu", "gpu7i.site"]


def test_interfaces_and_the_loopback() -> None:
    assert interface_address("lo") == "127.0.0.1"
    with pytest.raises(OSError, match="device"):
        interface_address("no-such")
    assert [is_loopback(one) for one in ("127.0.1.1", "::1", "localhost", "10.0.0.1", "host")] == [
        True, True, True, False, False,
    ]  # fmt: skip


def test_the_kernel_is_asked_for_an_interface_in_one_module() -> None:
    source = Path(runyard.__file__).parent
    asking = [file.name for file in source.rglob("*.py") if "0x8915" in file.read_text()]
    assert asking == ["own_address.py"]
