"""The port through which visits know accounts: implemented by the package `sessions`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from shoal.core.cookies import Jar
from shoal.core.session_config import SessionConfig


class KnownAccount(Protocol):
    """An account that can be logged in here. Its repr shows no values."""

    @property
    def name(self) -> str:
        """The name without its group: `alice`."""
        ...

    @property
    def fields(self) -> Mapping[str, str]:
        """All its columns, by name. They are secret."""
        ...


class OwnSessions(Protocol):
    """The accounts whose passwords a worker knows."""

    @property
    def pools(self) -> tuple[str, ...]:
        """The groups whose tasks it may be given: `@shop`."""
        ...

    async def open(self) -> None:
        """Read the accounts, and tell the fleet which there are."""

    async def keep_fresh(self) -> None:
        """Read the accounts again when it is time. Runs until it is cancelled."""

    async def close(self) -> None:
        """Forget the accounts."""

    def account(self, identity: str) -> KnownAccount | None:
        """Return the account of an identity, `shop#alice`. None: it is not known here."""
        ...

    def table(self, identity: str) -> SessionConfig:
        """Return how the accounts of the identity's group log in."""
        ...

    def seal(self, identity: str, jar: Jar) -> bytes:
        """Return cookies sealed, as the frontier keeps them."""
        ...

    def unseal(self, identity: str, kept: bytes) -> Jar | None:
        """Return the cookies that `seal` was given. None: they cannot be read here."""
        ...
