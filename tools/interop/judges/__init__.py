"""What a client must have done and seen, feature by feature.

No judge takes the program's word alone. What it wrote is read back from the log by the witness, what it
changed is asked from the broker by the stage, and what it says it was told has to be in the answers that
passed over the wire.
"""
