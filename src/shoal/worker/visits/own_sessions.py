"""What visits need to know of accounts: see the package `sessions`, which has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from shoal.core.cookies import Jar
from shoal.core.session_config import SessionConfig


class KnownAccount(Protocol):
    """An account that can be logged in here. Its repr shows no values."""

    @property
    def name(self) -> str:
        """`alice`."""
        ...

    @property
    def fields(self) -> Mapping[str, str]:
        """All its columns, by name. They are secret."""
        ...


class OwnSessions(Protocol):
    """The accounts that a worker knows the passwords of."""

    @property
    def pools(self) -> tuple[str, ...]:
        """The groups that it may be given tasks of: `@shop`."""
        ...

    async def open(self) -> None:
        """Read the accounts, and tell the fleet of them."""

    async def keep_fresh(self) -> None:
        """Read them again when it is time. Runs until it is cancelled."""

    async def close(self) -> None:
        """Forget them."""

    def account(self, identity: str) -> KnownAccount | None:
        """The account of an identity, `shop#alice`. None: it is not known here."""
        ...

    def table(self, identity: str) -> SessionConfig:
        """How the accounts of its group log in."""
        ...

    def seal(self, identity: str, jar: Jar) -> bytes:
        """Its cookies, as the frontier keeps them."""
        ...

    def unseal(self, identity: str, kept: bytes) -> Jar | None:
        """The reverse. None: they cannot be read here."""
        ...
