"""A topic as Arrow columns: record batches to tables and back."""
