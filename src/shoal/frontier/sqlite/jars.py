"""The cookie jars of chains."""

from __future__ import annotations

import msgspec

from shoal.core.cookies import Jar
from shoal.frontier.sqlite.step import Step

_read = msgspec.json.Decoder(Jar).decode


def jar_of(current: Step, chain: str) -> Jar | None:
    """The cookies of a chain; None if it has none."""
    found = current.execute("jar", current.id, chain).fetchone()
    return None if found is None else _read(found[0])


def keep_jar(current: Step, chain: str, jar: Jar) -> None:
    """Store the cookies of a chain. They are deleted when the chain has no tasks left."""
    if jar:
        current.execute("save_jar", current.id, chain, msgspec.json.encode(jar))
    else:
        current.execute("delete_jar", current.id, chain)
