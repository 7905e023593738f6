"""What the controller can be asked to do, one file per API.

Every command reads the state, changes nothing, and returns a `Decision`: the records to write and the
answer to give once they are committed.
"""
