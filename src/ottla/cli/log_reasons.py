"""Why each file of a log directory exists, in a sentence or two."""

from __future__ import annotations

from typing import Final

from ottla.storage.inspect.directory import Kind

WHY: Final = {
    Kind.LOG: (
        "The data itself: batches of records, one after the other, only ever appended to. The number in "
        "the name is the offset of the first record that can be in it."
    ),
    Kind.OFFSET_INDEX: (
        "Where to start looking for an offset. It is sparse: one entry for every few kilobytes of data "
        "says in which byte of the .log a batch begins, so a lookup is a binary search here and a short "
        "walk there."
    ),
    Kind.TIME_INDEX: (
        "Where to start looking for a moment. Each entry says how young the records up to an offset are "
        "at most; with it a consumer can begin two hours ago."
    ),
    Kind.TRANSACTION_INDEX: (
        "The transactions that were aborted in this segment, whose records readers of committed data "
        "skip. It only exists where there was an abort."
    ),
    Kind.PRODUCER_SNAPSHOT: (
        "What the broker remembers of each producer, as of the offset in the name: the last sequence "
        "number, by which it knows a repeated batch, and any open transaction. It saves reading the log "
        "at a start."
    ),
    Kind.LEADER_EPOCHS: (
        "At which offset each leader of the partition began to write. A replica that was away compares it"
        " with its leader's, and cuts off what the others never had."
    ),
    Kind.PARTITION_METADATA: (
        "The id of the topic. A topic that was deleted and made again has the same name and another id, "
        "so old files are not taken for new ones."
    ),
    Kind.METADATA_SNAPSHOT: (
        "The cluster's metadata as of the offset in the name, written out whole, so that the log before "
        "it need not be kept."
    ),
    Kind.QUORUM_STATE: (
        "Whom this node follows in the metadata quorum, and for whom it voted. It must not forget: a node"
        " that votes twice could make two leaders."
    ),
    Kind.META_PROPERTIES: ("To which cluster and node this directory belongs, and its own id."),
    Kind.CLEAN_SHUTDOWN: (
        "The broker was stopped in order, so the logs need not be checked at the next start. It is there "
        "between two runs only."
    ),
    Kind.LOCK: ("Held by the broker that uses this directory, so that no second one does."),
    Kind.LEFTOVER: (
        "Left over: about to be deleted, or from a step that a crash interrupted. A broker clears it away."
    ),
    Kind.UNKNOWN: ("Not one of Kafka's files; brokers leave it alone."),
}

CHECKPOINTS: Final = {
    "bootstrap.checkpoint": "The records with which the metadata of this cluster began.",
    "recovery-point-offset-checkpoint": (
        "Up to which offset each log is safely on disk. After a crash only what comes later has to be "
        "checked."
    ),
    "replication-offset-checkpoint": (
        "The high watermark of each partition: up to there every replica in sync has the records, and "
        "consumers may see them."
    ),
    "log-start-offset-checkpoint": (
        "Where logs begin whose first records were deleted by request, in the middle of a segment."
    ),
    "cleaner-offset-checkpoint": ("How far each compacted partition has been compacted."),
}
