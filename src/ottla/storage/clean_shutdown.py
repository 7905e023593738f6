"""`.kafka_cleanshutdown`: present between two runs when the first one closed every log.

It holds the broker epoch of the run that ended, which the broker tells the controller when it registers
again. It is taken away before any log is opened, so that a crash at any later moment counts as a crash.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path

from ottla.core.files import Files
from ottla.storage.files import write_atomically

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
UNKNOWN_EPOCH = -1

logger = logging.getLogger(__name__)


def format_clean_shutdown(broker_epoch: int) -> bytes:
    return b'{"version":0,"brokerEpoch":%d}' % broker_epoch


def parse_clean_shutdown(data: bytes) -> int | None:
    """The broker epoch in a clean-shutdown file, `UNKNOWN_EPOCH` if it is empty, None if it is damaged."""
    if not data:
        return UNKNOWN_EPOCH  # Kafka before 3.7 wrote an empty file
    try:
        content = json.loads(data)
    except ValueError:
        return None
    epoch = content.get("brokerEpoch", UNKNOWN_EPOCH) if isinstance(content, dict) else None
    return epoch if type(epoch) is int else None


def take_clean_shutdown(files: Files, directory: str) -> int | None:
    """Whether the last run stopped cleanly, as its broker epoch; None when it did not. Removes the file.

    Kafka takes any file of that name for a clean stop. A damaged one makes us look at the logs instead:
    that costs a scan and can never be wrong.
    """
    path = Path(directory, CLEAN_SHUTDOWN)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    files.unlink(str(path))
    # Were the name to come back after a power loss, the logs of a crashed run would be trusted.
    files.sync_directory(directory)
    epoch = parse_clean_shutdown(data)
    if epoch is None:
        logger.warning("%s is damaged: the logs are checked as after a crash", path)
    return epoch


def write_clean_shutdown(files: Files, directory: str, broker_epoch: int) -> None:
    """The last write of a clean stop: every log is synced and every checkpoint is in place."""
    write_atomically(files, str(Path(directory, CLEAN_SHUTDOWN)), format_clean_shutdown(broker_epoch))
