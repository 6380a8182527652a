"""A server that is known by a name, where the name server takes its time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environments import skip_or_fail
from tests.packages import require, search_path

# Both the name server and the server answer in the loop under test: while it waits for a name, it
# hears no question for one. Runs in mounts and a network of its own, with a resolver as glibc's.
PROGRAM = """
import os, socket, subprocess, sys
from runyard.node.link.channel import Channel
from runyard.node.link.place import ServerAddress
from runyard.node.link.relay import Relay
from runyard.node.system.loop import READ, Loop

kind, resolver = sys.argv[1:]
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
subprocess.run(["mount", "--bind", resolver, "/etc/resolv.conf"], check=True)
loop, answers = Loop(), []
names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
names.bind(("127.0.0.1", 53))

def tell_address(_events):
    query, who = names.recvfrom(512)
    end = query.index(bytes(1), 12) + 5
    is_ipv4 = query[end - 4 : end - 2] == bytes([0, 1])
    address = bytes([192, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]) if is_ipv4 else b""
    counts = bytes([129, 128, 0, 1, 0, len(address) // 16, 0, 0, 0, 0])
    names.sendto(query[:2] + counts + query[12:end] + address, who)

def listen():
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    return listening

def accept(_events):
    peer, _ = server.accept()
    def reply(_events):
        loop.forget(peer.fileno())
        peer.recv(65536)
        peer.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 6\\r\\n\\r\\n\\"here\\"")
    loop.watch(peer.fileno(), READ, reply)

loop.watch(names.fileno(), READ, tell_address)
server = listen()
loop.watch(server.fileno(), READ, accept)
address = ServerAddress(
    {"url": f"http://login.cluster:{server.getsockname()[1]}", "key": "k", "hostname": "other"}, ""
)
address.is_elsewhere = True  # It has nothing to prove.

class Named:
    def __init__(self):
        self.address = address
    def find(self):
        return address
    def is_silent(self):
        pass

if kind == "channel":
    channel = Channel(loop, Named())
    channel.post("/forgotten", {}, lambda _answer: answers.append("of what was dropped"))
    channel.drop()
    channel.post("/asked", {}, lambda answer: answers.append(answer.json()))
else:
    door = listen()
    relay = Relay(loop, Named(), door)
    client = socket.create_connection(door.getsockname())
    client.sendall(b"GET / HTTP/1.1\\r\\n\\r\\n")
    loop.watch(client.fileno(), READ, lambda _events: answers.append(client.recv(65536)))
while not answers:
    loop.turn()
print(answers[0])
try:
    print("left behind:", os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    pass
"""


@pytest.mark.parametrize("kind", ["channel", "relay"])
def test_the_loop_goes_on_while_a_name_is_looked_up(tmp_path: Path, kind: str) -> None:
    if os.geteuid() != 0:
        skip_or_fail("only root can have a name server of its own (Linux namespaces)")
    require("iproute2")
    resolver = tmp_path / "resolv.conf"
    resolver.write_text("nameserver 127.0.0.1\n")
    words = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]
    done = subprocess.run(
        [*words, sys.executable, "-c", PROGRAM, kind, str(resolver)],
        env={**os.environ, "PATH": search_path()},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    (answer,) = done.stdout.splitlines()
    assert "here" in answer
