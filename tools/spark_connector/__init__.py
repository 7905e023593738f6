"""Spark's own Kafka connector beside the data source `ottla`: the same jobs, which must come to the same."""
