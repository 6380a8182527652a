"""Write docs/runyard-file.schema.json from the records that read runyard.yaml.

.venv/bin/python scripts/project_schema.py
"""

from __future__ import annotations

import json
from pathlib import Path

from runyard.config.schema import project_schema

if __name__ == "__main__":
    page = Path(__file__).parent.parent / "docs" / "runyard-file.schema.json"
    page.write_text(json.dumps(project_schema(), indent=1) + "\n")
