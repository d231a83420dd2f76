"""The port of object stores: files by name, in a folder or in S3. All that an archive needs."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Objects(ABC):
    """Objects by name, such as `shop/pages/x.gz`. No part of a name is empty, `.` or `..`, or
    begins with a dot.

    Errors are StorageBusy (it will pass), StorageFailed, and ConfigError where the store is set up
    wrong: no such bucket, no access, not a folder.
    """

    shown: str
    """Where they are, for messages."""

    @abstractmethod
    async def check(self) -> None:
        """Raise ConfigError if nothing can be put here."""

    @abstractmethod
    async def put(self, name: str, data: bytes) -> bool:
        """Make an object: it appears complete or not at all, and is durable when this returns.

        One that is there already stays, or is replaced: the same name always means the same data.
        Returns False if it is known that it was there.
        """

    @abstractmethod
    async def get(self, name: str) -> bytes:
        """The data of an object. Raises StorageFailed if there is none."""

    @abstractmethod
    async def names(self, folder: str) -> list[str]:
        """The full names of all objects in a folder, sorted."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connections, or the threads."""
