"""The cluster's metadata: the image folded from the metadata log, and the controller that proposes changes.

Pure. What the log holds is decided by `controller`, one file per API in `commands/`; what it means is
`image.Image.apply`. Neither knows where the log is, nor who else holds a copy of it.
"""
