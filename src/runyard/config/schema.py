"""runyard.yaml as a JSON Schema for editors, made from the records that read it."""

from __future__ import annotations

from runyard.config.project_shape import ProjectFile
from runyard.reading.kinds import Schema
from runyard.reading.records import record_schema


def project_schema() -> Schema:
    """What can be said about a file without asking the cluster."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "runyard.yaml",
        "description": "One experiment: its command, environment, resources and tracking.",
        **record_schema(ProjectFile),
    }
