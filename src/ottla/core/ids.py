"""The 16-byte ids that Kafka gives topics, clusters and log directories."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode


class Uuid(bytes):
    """Sixteen raw bytes that print the way Kafka prints them: URL-safe base64 without padding.

    A `bytes` underneath, so that an id costs the codec one slice and compares and hashes at C speed.
    """

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Uuid:
        """The id written as 22 characters; `ValueError` when it is not one."""
        raw = urlsafe_b64decode(text + "==")
        if len(raw) != 16:
            raise ValueError(f"{text!r} is not a Kafka id: it stands for {len(raw)} bytes, not 16")
        return cls(raw)

    @classmethod
    def from_random(cls, sixteen: bytes) -> Uuid:
        """A version-4 id from sixteen random bytes the caller drew.

        Kafka never hands out an id whose text starts with '-', because command lines take it for a flag;
        the caller draws again when this answers one that `is_usable` refuses.
        """
        raw = bytearray(sixteen)
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        return cls(raw)

    @property
    def is_usable(self) -> bool:
        return not str(self).startswith("-") and not self.is_reserved

    @property
    def is_reserved(self) -> bool:
        """Kafka keeps the first hundred ids for itself: the zero id, the metadata topic, lost directories."""
        return self[:8] == bytes(8) and int.from_bytes(self[8:], "big") < 100

    def __str__(self) -> str:
        return urlsafe_b64encode(self).rstrip(b"=").decode()

    def __repr__(self) -> str:
        return f"Uuid({str(self)!r})"


ZERO_UUID = Uuid(bytes(16))
METADATA_TOPIC_ID = Uuid(bytes(15) + b"\x01")
UNASSIGNED_DIRECTORY = Uuid(bytes(15) + b"\x01")
LOST_DIRECTORY = Uuid(bytes(15) + b"\x02")
MIGRATING_DIRECTORY = ZERO_UUID
