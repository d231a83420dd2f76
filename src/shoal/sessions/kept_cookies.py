"""Checks that a process has the key for the cookies that the frontier stores."""

from __future__ import annotations

from shoal.errors import ConfigError
from shoal.frontier.port import HasExits
from shoal.sessions.vault import SETTING, Unreadable, Vault, is_sealed


async def check_cookies(frontier: HasExits, name: str, vault: Vault) -> None:
    """Check that the stored cookies can be read. Raises ConfigError if not.

    Workers with different keys would log out each other's accounts until tasks are dead.
    """
    for account in await frontier.accounts(name, jars=True):
        try:
            vault.unseal(account.name, account.jar)
        except Unreadable as error:
            if not is_sealed(account.jar):
                continue  # They were stored before there was a key, and count as logged out.
            raise ConfigError(
                f"{SETTING}: the cookies of {account.name} cannot be read: {error};"
                " shoal sessions logout forgets them"
            ) from None
