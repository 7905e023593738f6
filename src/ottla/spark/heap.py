"""Spark's Python processes collect garbage after every task, and look at every object for that.

What was imported (pandas, pyarrow, pyspark, us) is close to a hundred thousand objects, which takes some 50
milliseconds: more than a task of a small batch takes. None of it ever becomes garbage.
"""

from __future__ import annotations

import gc


def freeze_imports() -> None:
    """Leave out of every collection from now on what this process has, once that is what it needs. Objects
    still go when nobody refers to them; only cycles of what is there now would stay."""
    if not gc.get_freeze_count():
        gc.freeze()
