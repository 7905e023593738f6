"""A run as a table, as plots, and as a page of the documentation."""
