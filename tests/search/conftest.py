"""SciPy has linear algebra of its own, which the search's engines load when they need it."""

from __future__ import annotations

import pytest

from tests.conftest import load_with_one_thread


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    load_with_one_thread("scipy.linalg")
