"""A schema registry: subjects with versions of schemas, and rules for what a next version may change."""
