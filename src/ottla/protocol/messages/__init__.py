"""Requests and responses: one file per API, named as Kafka names it."""
