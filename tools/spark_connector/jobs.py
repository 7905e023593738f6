"""A job: a name, and what it does at a place."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tools.spark_connector.place import Facts, Place


class Job(NamedTuple):
    family: str
    name: str
    run: Callable[[Place], Facts]
