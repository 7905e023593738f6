"""Protobuf schemas: `schema` is where to begin."""
