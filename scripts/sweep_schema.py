"""Write docs/sweep-file.schema.json from the tables that read sweep files.

.venv/bin/python scripts/sweep_schema.py
"""

from __future__ import annotations

import json
from pathlib import Path

from runyard.search.schema import sweep_schema

if __name__ == "__main__":
    page = Path(__file__).parent.parent / "docs" / "sweep-file.schema.json"
    page.write_text(json.dumps(sweep_schema(), indent=2) + "\n")
