"""Events of a small shop, the same ones every time: `python shop.py orders | ottla produce orders`.

Orders come a little out of order, some twice, and one line in a hundred is no order at all, as in life.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

OPENING = datetime(2026, 1, 1, 9, tzinfo=UTC)
CUSTOMERS = ("ada", "barbara", "edsger", "grace", "ottla")
BROKEN = ('{"id": ', "not json", '{"id": "seven", "customer": 7}')


def orders(count: int, *, first: int = 0, seconds_apart: float = 1.0) -> Iterator[str]:
    """Lines of JSON: `count` orders from number `first` on, their repetitions, and lines that are broken."""
    for number in range(first, first + count):
        chance = random.Random(number)
        late = chance.choice((0, 0, 0, 20))
        at = OPENING + timedelta(seconds=number * seconds_apart - late)
        line = json.dumps(
            {
                "id": number,
                "customer": chance.choice(CUSTOMERS),
                "amount": chance.randrange(100, 10_000) / 100,
                "at": at.isoformat(),
            }
        )
        yield line
        if chance.random() < 0.02:
            yield line
        if chance.random() < 0.01:
            yield chance.choice(BROKEN)


def changes(count: int) -> Iterator[str]:
    """What happens to the rows of a table of customers: new, changed, gone."""
    chance = random.Random(count)
    for version in range(count):
        change: dict[str, Any] = {"id": chance.randrange(max(1, count // 5)), "version": version}
        if chance.random() < 0.1:
            change["deleted"] = True
        else:
            change["name"] = chance.choice(CUSTOMERS)
            change["city"] = chance.choice(("Prague", "Berlin", "Zürau"))
        yield json.dumps(change, ensure_ascii=False)


if __name__ == "__main__":
    kind, count = (sys.argv + ["orders", "2000"][len(sys.argv) - 1 :])[1:3]
    for line in {"orders": orders, "changes": changes}[kind](int(count)):
        print(line)
