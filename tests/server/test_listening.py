"""Where the server listens, for this machine alone or for the nodes of a cluster."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from runyard import own_address
from runyard.clusters.profile import Network, Profile
from runyard.errors import ServerError
from runyard.launch.serving import listen_for, wait_minutes
from runyard.server.http import listening
from runyard.server.http.binding import _candidates
from runyard.server.http.listening import find_listening


def test_an_address_is_taken_as_it_is_and_this_machine_always_hears() -> None:
    assert find_listening("127.0.0.1").addresses == ("127.0.0.1",)
    assert find_listening("10.1.2.3").addresses == ("10.1.2.3", "127.0.0.1")
    everywhere = find_listening("0.0.0.0")
    assert (everywhere.addresses, everywhere.name) == (("0.0.0.0",), socket.gethostname())
    assert find_listening("::1").addresses == ("::1",)


def test_for_a_cluster_the_address_is_looked_up_and_the_wish_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = {socket.gethostname(): "10.0.0.7", "jwb01i.juwels": "10.128.0.1"}
    monkeypatch.setattr(listening, "look_up", known.get)
    monkeypatch.setattr(own_address, "look_up", known.get)
    found = find_listening("cluster")
    assert (found.addresses, found.name) == (("10.0.0.7", "127.0.0.1"), "10.0.0.7")
    assert found.asked == "cluster"
    monkeypatch.setattr(socket, "gethostname", lambda: "jwb01.juwels")
    found = find_listening("cluster:+i")
    assert (found.addresses[0], found.name) == ("10.128.0.1", "jwb01i.juwels")
    with pytest.raises(ServerError, match="no name server knows jwb01x"):
        find_listening("cluster:+x")


def test_an_interface_is_named_and_an_unknown_one_is_told() -> None:
    assert find_listening("cluster:lo").addresses == ("127.0.0.1", "127.0.0.1")
    with pytest.raises(ServerError, match="no network interface 'ib99'") as told:
        find_listening("cluster:ib99")
    assert "lo" in (told.value.mend or "")


def test_a_firewall_lets_a_range_of_ports_through() -> None:
    found = find_listening("10.1.2.3@6000-6002")
    assert (found.ports, found.asked) == ((6000, 6002), "10.1.2.3@6000-6002")
    assert find_listening("127.0.0.1@6000-6002").asked == "127.0.0.1"
    assert set(_candidates(found.ports, last=20_000)) == {6000, 6001, 6002}
    assert _candidates(found.ports, last=6002)[0] == 6002
    for wrong in ("6000", "0-9", "9-8", "1-70000"):
        with pytest.raises(ServerError, match="no range of ports"):
            find_listening(f"cluster@{wrong}")


def test_a_machine_without_a_network_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "own_address", lambda: None)
    found = find_listening("cluster")
    # Kept as what it is: on another machine nobody may send a key to this address.
    assert (found.addresses, found.asked) == (("127.0.0.1",), "127.0.0.1")


def test_the_profile_says_by_which_way_nodes_come() -> None:
    def said(**network: str) -> str:
        profile = replace(Profile(), network=Network(**network))
        return listen_for(profile, interfaces=["lo", "eth0", "ib0"])

    assert said() == "cluster"
    assert said(interface="ib0") == "cluster:ib0"
    assert said(interface="hsn0") == "cluster"  # The compute nodes' own; not on this one.
    assert said(address_suffix="i") == "cluster:+i"
    assert said(login_address="login1-ib") == "login1-ib"
    assert said(interface="ib0", ports="6000-6100") == "cluster:ib0@6000-6100"
    assert said(login_address="eth0", interface="ib0") == "cluster:eth0"


def test_the_next_job_may_begin_when_most_of_the_time_is_over() -> None:
    assert wait_minutes(86_400) == 22 * 60
    assert wait_minutes(3600) == 45
    assert wait_minutes(60) == 1
