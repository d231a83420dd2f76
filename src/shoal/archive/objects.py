"""The port of object stores: files by name, in a folder or in S3; all that an archive needs."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Objects(ABC):
    """A store of objects by name, such as `shop/pages/x.gz`. No part of a name is empty or starts
    with a dot.

    Errors are StorageBusy (it will pass), StorageFailed, and ConfigError for a wrong setup: no such
    bucket, no access, not a folder.
    """

    shown: str
    """The address, for messages."""

    @abstractmethod
    async def check(self) -> None:
        """Check that objects can be stored here. Raises ConfigError."""

    @abstractmethod
    async def put(self, name: str, data: bytes) -> bool:
        """Store an object. It appears complete or not at all, and is durable when this returns.

        An existing object is kept or replaced, as the same name always means the same data. Returns
        False if the object is known to have existed.
        """

    @abstractmethod
    async def get(self, name: str) -> bytes:
        """The data of an object. Raises StorageFailed if there is none."""

    @abstractmethod
    async def names(self, folder: str) -> list[str]:
        """The full names of all objects in a folder, sorted."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connections or the threads."""
