"""Whether a process has the key of the cookies that the fleet has kept."""

from __future__ import annotations

from shoal.errors import ConfigError
from shoal.frontier.port import HasExits
from shoal.sessions.vault import SETTING, Unreadable, Vault, is_sealed


async def check_cookies(frontier: HasExits, name: str, vault: Vault) -> None:
    """Whether the cookies that were kept can be read. With another key than that of its fellows, a
    worker would log all out, and they it, until tasks die of that. Raises ConfigError."""
    for account in await frontier.accounts(name, jars=True):
        try:
            vault.unseal(account.name, account.jar)
        except Unreadable as error:
            if not is_sealed(account.jar):
                continue  # They were kept before there was a key, and are taken for logged out.
            raise ConfigError(
                f"{SETTING}: the cookies of {account.name} cannot be read: {error};"
                " shoal sessions logout forgets them"
            ) from None
