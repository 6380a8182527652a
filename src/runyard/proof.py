"""How the server proves who it is before one of our clients sends it a key.

The port of a dead server can be bound by any user of the machine. So each new connection begins
with a question: a random text and the id of the key. The answer is an HMAC by the key's hash, which
the server stores and nobody else has. It is taken over the address that the server has written into
the state folder too: a stranger at the old address who passes the question on to the server at its
new one gets an answer that names the new one. A server that begins to listen to other machines too
goes on listening on its own, at the same port: who dialled that takes an answer for the machine.
"""

from __future__ import annotations

import os

PROOF_PATH = "/api/proof"
# What tells keys apart; all of the hash would be needed to answer for one.
ID_LENGTH = 12
# In bytes, with its head; whoever is no server of ours may say more.
LONGEST_ANSWER = 4096
_LOOPBACK = ("//127.0.0.1:", "//localhost:", "//[::1]:")


class Question:
    """What is asked of whoever answers at an address, once: does it know the key?"""

    __slots__ = ("_proofs", "path")

    def __init__(self, key: str, url: str) -> None:
        """`url`: the server's address as the state folder has it, by whatever way it is reached."""
        hashed, nonce = hash_key(key), os.urandom(16).hex()
        self.path = f"{PROOF_PATH}?key={hashed[:ID_LENGTH]}&nonce={nonce}"
        names = [url, on_this_machine(url)] if any(host in url for host in _LOOPBACK) else [url]
        self._proofs = [prove(hashed, nonce, name).encode() for name in names]

    def is_answered_by(self, body: bytes) -> bool:
        return any(proof in body for proof in self._proofs)


def on_this_machine(url: str) -> str:
    """What stands for a server's address where it is reached by the machine's own loopback."""
    return f"port {url.rpartition(':')[2].rstrip('/')} of {os.uname().nodename}"


def hash_key(key: str) -> str:
    """As the server stores it."""
    import hashlib  # Only now: agents and commands that need no server load this module too.

    return hashlib.sha256(key.encode()).hexdigest()


def prove(hashed: str, nonce: str, url: str) -> str:
    """The answer of the server at `url`, which knows the hash of a key; the key is not sent."""
    import hmac

    return hmac.new(hashed.encode(), f"server {nonce} {url}".encode(), "sha256").hexdigest()
