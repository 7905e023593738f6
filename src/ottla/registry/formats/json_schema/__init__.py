"""JSON Schema: `schema` is where to begin."""
