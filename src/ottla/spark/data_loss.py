"""What happens when records that a query should read are gone: `failOnDataLoss` decides."""

from __future__ import annotations

import logging

logger = logging.getLogger("ottla.spark")


class DataLoss(Exception):
    """Records that should have been read are gone, and `failOnDataLoss` is true."""


def report_data_loss(reason: str, *, fail: bool) -> None:
    """Raise, or warn and let the query go on with what is left."""
    if fail:
        raise DataLoss(
            f"{reason}. Some data may have been lost: retention removed records, or somebody a topic, "
            "before they were read. To go on with what is left, set the option failOnDataLoss to false."
        )
    logger.warning("%s. Some data may have been lost; the query goes on, as failOnDataLoss is false.", reason)
