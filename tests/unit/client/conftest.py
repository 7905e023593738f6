"""A broker for the session, in a thread, and names that no other test uses."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator

import pytest

from ottla import Broker

SMALL = {"offsets.topic.num.partitions": "2", "group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    with Broker(properties=SMALL) as broker:
        yield broker.bootstrap


@pytest.fixture
def unique() -> Callable[[str], str]:
    suffix, numbers = uuid.uuid4().hex[:8], itertools.count()
    return lambda stem: f"{stem}-{suffix}-{next(numbers)}"
