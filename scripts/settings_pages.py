"""Write what the documentation says about settings, from the records that read them:
docs/runyard-file.schema.json, the tables of docs/runyard-file.md and docs/clusters.md, and what the
pages in docs/clusters/ say of the shipped profiles.

.venv/bin/python scripts/settings_pages.py
"""

from __future__ import annotations

import json
from pathlib import Path

from facts_table import with_facts
from settings_tables import profile_tables, project_schema, project_tables, with_tables

from runyard.clusters.load import SHIPPED, load_profile

DOCS = Path(__file__).parent.parent / "docs"

if __name__ == "__main__":
    schema = DOCS / "runyard-file.schema.json"
    schema.write_text(json.dumps(project_schema(), indent=1) + "\n")
    for name, tables in (("runyard-file", project_tables()), ("clusters", profile_tables())):
        page = DOCS / f"{name}.md"
        page.write_text(with_tables(page.read_text(), tables))
    for page in sorted((DOCS / "clusters").glob("*.md")):
        page.write_text(
            with_facts(page.read_text(), lambda name: load_profile(name, folders=[SHIPPED]))
        )
