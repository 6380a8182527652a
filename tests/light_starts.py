"""Python starts with this where `LIGHT_STARTS` is set: tests start it thousands of times.

A quarter of what a short program with a wandb client costs is none of what tests look at:
collecting garbage while it imports, reading the sources of pydantic's classes for their words, and
writing down which of the many packages here are installed. runyard's own processes start as they
do at a user's.
"""

import gc
import os
import sys

_OWN = ("runyard", "warm_server.py")
# They run the tests: what is in their environment is in everybody's.
_TESTS = ("pytest", "suite.py", "import sys;exec(eval(sys.stdin.readline()))")


def _begin(words: list[str]) -> None:
    if any(word.startswith(_OWN) or word.endswith(_OWN) for word in words):
        return
    gc.set_threshold(50000, 20, 100)
    docs = type(sys)("pydantic._internal._docs_extraction")
    vars(docs)["extract_docstrings_from_cls"] = lambda *_words, **_named: {}
    sys.modules.setdefault(docs.__name__, docs)
    if not any(word.endswith(_TESTS) for word in words):
        os.environ.setdefault("WANDB_X_SAVE_REQUIREMENTS", "false")


if __name__ == "light_starts":
    _begin(sys.orig_argv)
