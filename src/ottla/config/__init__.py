"""Settings: declared, parsed, checked; frozen snapshots."""
