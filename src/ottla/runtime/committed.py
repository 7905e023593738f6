"""The image of what is committed, on every node: records below the high watermark, folded in their order.

Whatever subscribed is told what changed. A long stretch of the log is folded in slices, so that a node that
was away for long does not stop serving while it catches up.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.metadata.comparison import difference
from ottla.metadata.delta import Delta
from ottla.metadata.image import Image, MetadataRecord
from ottla.raft.log import SnapshotId
from ottla.runtime.metadata_log import MetadataLog, fold_batch, read_batches
from ottla.runtime.snapshots import Snapshot

# Batches that are folded before other work of the loop gets its turn. Most have a few records.
SLICE: Final = 200

MetadataListener = Callable[[Image, Delta], None]

logger = logging.getLogger("ottla.quorum")


class Appended(NamedTuple):
    """A batch that this node has appended as leader. Its records need not be read back."""

    records: list[MetadataRecord]
    base_offset: int
    epoch: int
    timestamp: int
    size: int

    @property
    def end_offset(self) -> int:
        return self.base_offset + len(self.records)


class Committed:
    """`advanced` is called whenever the image has moved on, after those who subscribed; `failed` when the log
    has what the image cannot follow."""

    def __init__(
        self, store: MetadataLog, advanced: Callable[[], None], failed: Callable[[Exception], object]
    ) -> None:
        self.image = store.image
        self._store = store
        self._advanced = advanced
        self._failed = failed
        self._listeners: list[MetadataListener] = []
        # What is appended and not committed. Bounded by the requests in flight, which wait for it.
        self._own: deque[Appended] = deque()
        self._high_watermark = 0
        self._is_folding = False

    @property
    def next_offset(self) -> int:
        """The first offset that is not folded in yet."""
        return self.image.offset + 1

    def subscribe(self, listener: MetadataListener) -> None:
        self._listeners.append(listener)

    def expect(self, appended: Appended) -> None:
        """This node has appended a batch, which will be committed unless it ceases to lead."""
        self._own.append(appended)

    def expect_nothing(self) -> None:
        """What was appended may be overwritten by another leader: from here on the log is read."""
        self._own.clear()

    def advance(self, high_watermark: int) -> None:
        """Everything below is committed."""
        self._high_watermark = max(high_watermark, self._high_watermark)
        if not self._is_folding:
            self._fold()

    def replace(self, snapshot: SnapshotId, content: Snapshot) -> None:
        """The log was replaced by a snapshot: take it over, and tell what is different."""
        self._own.clear()
        image = Image()
        for record in content.records:
            image.apply(record, snapshot.end_offset - 1)
        image.offset, image.epoch = snapshot.end_offset - 1, snapshot.epoch
        self._store.last_timestamp = content.last_timestamp
        self._store.bytes_since_snapshot = 0
        self.image.take_over(image, difference(self.image, image))
        self._high_watermark = max(self._high_watermark, snapshot.end_offset)
        self._tell()
        self._advanced()

    def _fold(self) -> None:
        self._is_folding = False
        before = self.next_offset
        try:
            is_done = self._fold_slice()
            if self.next_offset > before:
                self._tell()
                self._advanced()
        except Exception as error:
            logger.exception("cannot follow the metadata log")
            self._failed(error)
            return
        if not is_done:
            self._is_folding = True
            asyncio.get_running_loop().call_soon(self._fold)

    def _fold_slice(self) -> bool:
        """Fold some batches; whether these were all."""
        left = SLICE
        while left and (offset := self.next_offset) < self._high_watermark:
            while self._own and self._own[0].end_offset <= offset:
                self._own.popleft()
            own = self._own[0] if self._own else None
            if own is not None and own.base_offset == offset:
                if own.end_offset > self._high_watermark:
                    break
                self._fold_own(own)
                left -= 1
            else:
                left -= self._fold_from_log(offset, left, None if own is None else own.base_offset)
        return left > 0

    def _fold_own(self, own: Appended) -> None:
        image = self.image
        for number, record in enumerate(own.records):
            image.apply(record, own.base_offset + number)
        image.epoch = own.epoch
        self._store.last_timestamp = own.timestamp
        self._store.bytes_since_snapshot += own.size

    def _fold_from_log(self, offset: int, most: int, end_offset: int | None) -> int:
        """Fold batches of the log, as many as there are up to a limit; how many that were."""
        end = self._high_watermark if end_offset is None else min(end_offset, self._high_watermark)
        count = 0
        for batch in read_batches(self._store.log, offset, end):
            fold_batch(self._store, batch, offset)
            count += 1
            if count == most:
                break
        assert count, f"the metadata log has nothing at {offset}, which is committed"
        return count

    def _tell(self) -> None:
        delta = self.image.take_delta()
        if delta:
            for listener in self._listeners:
                try:
                    listener(self.image, delta)
                except Exception:
                    logger.exception("a listener failed on a change of the metadata")
