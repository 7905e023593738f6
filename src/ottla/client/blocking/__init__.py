"""A Kafka client on plain sockets, without an event loop: for Spark's executors and for `read_topic`.

An object of it is used by one thread at a time and is not carried over a fork; `cached_cluster` gives every
process and thread its own.
"""
