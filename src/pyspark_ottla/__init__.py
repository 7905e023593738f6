"""Where Spark looks for the data source `ottla`: it imports every top-level package named `pyspark_*`."""

from ottla.spark.source import OttlaDataSource as DefaultSource

__all__ = ["DefaultSource"]
