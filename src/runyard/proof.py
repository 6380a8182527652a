"""How the server proves its identity before a client sends it a key.

Any user of the machine can bind the port of a dead server. So each new connection begins with a
question: a random text and the id of the key. The answer is an HMAC with the key's hash, which only
the server stores. The HMAC also covers the address that the server has written into the state
folder. So if a stranger at the old address passes the question on to the server at its new address,
the answer names the new address, and the client refuses it. A server that begins to listen to other
machines keeps its port on the loopback: a client that connected to the loopback also accepts an
answer for this port and machine.
"""

from __future__ import annotations

import os

PROOF_PATH = "/api/proof"
# Enough to identify a key. An answer needs the whole hash.
ID_LENGTH = 12
# In bytes, with its head; a foreign server may send more.
LONGEST_ANSWER = 4096
# The names of a machine for itself.
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LOOPBACK_URLS = ("//127.0.0.1:", "//localhost:", "//[::1]:")


class Question:
    """One question to whoever answers at an address: does it know the key?"""

    __slots__ = ("_proofs", "path")

    def __init__(self, key: str, url: str) -> None:
        """`url`: the server's address in the state folder, even if it is reached another way."""
        hashed, nonce = hash_key(key), os.urandom(16).hex()
        self.path = f"{PROOF_PATH}?key={hashed[:ID_LENGTH]}&nonce={nonce}"
        names = (
            [url, on_this_machine(url)] if any(host in url for host in _LOOPBACK_URLS) else [url]
        )
        self._proofs = [prove(hashed, nonce, name).encode() for name in names]

    def is_answered_by(self, body: bytes) -> bool:
        return any(proof in body for proof in self._proofs)


def on_this_machine(url: str) -> str:
    """Stands for the address of a server that is reached by the loopback of this machine."""
    return f"port {url.rpartition(':')[2].rstrip('/')} of {os.uname().nodename}"


def hash_key(key: str) -> str:
    """The hash that the server stores."""
    import hashlib  # Imported late: agents and commands that need no server load this module too.

    return hashlib.sha256(key.encode()).hexdigest()


def prove(hashed: str, nonce: str, url: str) -> str:
    """The answer of the server at `url`, which knows the hash of a key; the key is not sent."""
    import hmac

    return hmac.new(hashed.encode(), f"server {nonce} {url}".encode(), "sha256").hexdigest()
