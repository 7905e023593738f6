"""A partition on this node: its role, its log, its in-sync set, and who waits for it."""
