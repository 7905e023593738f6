"""Classic groups: members elect a protocol, one of them assigns the partitions to all."""
