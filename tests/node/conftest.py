"""One server for all tests of a module: they look at processes, not at the state folder."""

from __future__ import annotations

import pytest

from runyard.home import Home


@pytest.fixture(scope="module")
def yard(module_home: Home) -> Home:
    return module_home
