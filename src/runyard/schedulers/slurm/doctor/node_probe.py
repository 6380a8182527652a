"""Runs inside a short job and says what a compute node sees. The standard library alone.

Its text goes into the job's script, so that it needs nothing of ours on the node; and that may have
no Python newer than 3.6. It is given a JSON object with what to look for, and writes its answer
into every marked folder that the node sees.
"""

import binascii
import hashlib
import hmac
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from typing import Any

SECONDS = 8.0


def look(asked: Any) -> Any:
    answers: Any = {}
    looking = [
        threading.Thread(target=_fill, args=(answers, name, question, asked), daemon=True)
        for name, question in QUESTIONS.items()
    ]
    for thread in looking:
        thread.start()
    for thread in looking:
        # A name server that does not answer cannot be told to give up.
        thread.join(2 * SECONDS)
    return dict(answers)


def _fill(answers: Any, name: str, question: Any, asked: Any) -> None:
    try:
        answers[name] = question(asked)
    except Exception as error:
        answers[name] = {"trouble": f"{type(error).__name__}: {error}"}


def _node(asked: Any) -> Any:
    return {
        "host": socket.gethostname(),
        "python": sys.executable,
        "version": "%d.%d.%d" % sys.version_info[:3],
        "same_python": os.access(asked["python"], os.X_OK),
        "job": os.environ.get("SLURM_JOB_ID"),
        "interfaces": sorted(os.listdir("/sys/class/net"))
        if os.path.isdir("/sys/class/net")
        else [],
    }


def _folders(asked: Any) -> Any:
    return {
        name: os.path.isfile(os.path.join(place, "here")) for name, place in asked["marks"].items()
    }


def _local(asked: Any) -> Any:
    """Folders on the node's own disk: what the site gives, and what is usually there."""
    names = [
        ("SLURM_TMPDIR", os.environ.get("SLURM_TMPDIR")),
        ("profile", os.path.expandvars(asked["local"])),
    ]
    names += [("TMPDIR", os.environ.get("TMPDIR")), ("/tmp", "/tmp")]
    places = []
    for name, place in names:
        if place and "$" not in place and os.path.isdir(place) and os.access(place, os.W_OK):
            free = shutil.disk_usage(place).free
            places.append({"name": name, "path": place, "free": free, "memory": _is_memory(place)})
    return places


def _is_memory(place: str) -> bool:
    best, kind = "", ""
    with open("/proc/self/mounts") as mounts:
        for line in mounts:
            fields = line.split(" ")
            inside = (
                os.path.realpath(place).startswith(fields[1].rstrip("/") + "/")
                or fields[1] == place
            )
            if inside and len(fields[1]) >= len(best):
                best, kind = fields[1], fields[2]
    return kind in ("tmpfs", "ramfs")


def _internet(asked: Any) -> Any:
    proxy = next((name for name in ("https_proxy", "HTTPS_PROXY") if os.environ.get(name)), None)
    reached = []
    for host, port in asked["outside"]:
        try:
            socket.create_connection((host, port), SECONDS / 2).close()
            reached.append(host)
        except OSError:
            pass
    return {"reached": reached, "proxy": proxy}


def _server(asked: Any) -> Any:
    """Whether the server that knows the key in the state folder answers here."""
    try:
        with open(os.path.join(asked["home"], "server.json")) as file:
            content = json.load(file)
    except FileNotFoundError:
        return {"key": False}
    if content["listen"] in asked["loopback"] and content["hostname"] != socket.gethostname():
        # On this port of another machine anybody may listen: the key is not for them.
        return {"key": True, "answers": False, "url": content["url"], "trouble": "loopback"}
    # As `proof.py` has it, which is not there on the node. The key itself is not sent.
    hashed = hashlib.sha256(content.get("node_key", content["key"]).encode()).hexdigest()
    nonce = binascii.hexlify(os.urandom(16)).decode()
    text = "server %s %s" % (nonce, content["url"])
    proof = hmac.new(hashed.encode(), text.encode(), "sha256").hexdigest()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), *_https(content))
    address = "%s/api/proof?key=%s&nonce=%s" % (content["url"], hashed[:12], nonce)
    try:
        with opener.open(address, timeout=SECONDS) as answer:
            if proof.encode() in answer.read(4096):
                return {"key": True, "answers": True, "url": content["url"]}
            trouble = "another program answers there"
    except (OSError, urllib.error.URLError) as error:
        trouble = str(error)
    return {"key": True, "answers": False, "url": content["url"], "trouble": trouble}


def _https(server: Any) -> Any:
    """Verifies a server that speaks TLS: by the state folder's authority, or by a known one."""
    if not server.get("authority"):
        return []
    context = ssl.create_default_context()
    context.load_verify_locations(cadata=server["authority"])
    if server.get("tls_ca"):
        context.load_verify_locations(server["tls_ca"])
    return [urllib.request.HTTPSHandler(context=context)]


def _keys(asked: Any) -> Any:
    return [place for place in asked["keys"] if os.access(place, os.R_OK)]


def _programs(asked: Any) -> Any:
    return [name for name in asked["programs"] if shutil.which(name)]


def _gpus(asked: Any) -> Any:
    try:
        answer = subprocess.run(
            [
                "nvidia-smi",
                "--query-gpu=name,memory.total,compute_cap",
                "--format=csv,noheader,nounits",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = answer.stdout.decode("utf-8", "replace").splitlines()
    return [line.strip() for line in lines if line.count(",") >= 1]


QUESTIONS = {
    "node": _node,
    "folders": _folders,
    "local": _local,
    "internet": _internet,
    "server": _server,
    "keys": _keys,
    "programs": _programs,
    "gpus": _gpus,
}


def main() -> None:
    question = json.loads(sys.argv[1])
    text = json.dumps(look(question))
    for place in question["marks"].values():
        if not os.path.isdir(place):
            continue
        aside = os.path.join(place, "answer.%d" % os.getpid())
        try:
            with open(aside, "w") as file:
                file.write(text)
            os.rename(aside, os.path.join(place, "answer.json"))
        except OSError:
            pass


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # A thread may still wait for a name server.
