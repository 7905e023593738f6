"""Pipelines over topics: flows, what they decode, where they write, and a runner that shows progress."""
