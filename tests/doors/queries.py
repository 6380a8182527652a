"""What clients ask for while the world is made."""

from __future__ import annotations

LINK = "mutation ($input: I!) { linkArtifact(input: $input) { versionIndex } }"
USE = "mutation ($input: I!) { useArtifact(input: $input) { artifact { id } } }"
ALERT = "mutation ($input: I!) { notifyScriptableRunAlert(input: $input) { success } }"
REWIND = "mutation ($input: I!) { rewindRun(input: $input) { rewoundRun { id } } }"
AGENT = "mutation ($input: I!) { createAgent(input: $input) { agent { id } } }"
UPSERT = """mutation ($input: I!) { upsertBucket(input: $input) { bucket { id } } }"""
FILES = """query ($id: ID!) { artifact(id: $id) { currentManifest { id file { directUrl } }
  files { edges { node { directUrl } } } } }"""
FILE = """mutation ($input: I!) { createRunFiles(input: $input) { files { uploadUrl } } }"""
