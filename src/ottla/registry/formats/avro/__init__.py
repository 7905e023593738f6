"""Avro schemas: `schema` is where to begin."""
