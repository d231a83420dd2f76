"""What chains keep of cookies."""

from __future__ import annotations

import msgspec

from shoal.core.cookies import Jar
from shoal.frontier.sqlite.step import Step

_read = msgspec.json.Decoder(Jar).decode


def jar_of(current: Step, chain: str) -> Jar | None:
    """The cookies of a chain, if it has any."""
    found = current.execute("jar", current.id, chain).fetchone()
    return None if found is None else _read(found[0])


def keep_jar(current: Step, chain: str, jar: Jar) -> None:
    """These are the cookies of a chain from now on. They go when it has nothing left to do."""
    if jar:
        current.execute("save_jar", current.id, chain, msgspec.json.encode(jar))
    else:
        current.execute("delete_jar", current.id, chain)
