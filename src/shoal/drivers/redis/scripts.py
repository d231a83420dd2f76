"""Lua scripts, put together from the files of a package: folder `lua`, one script per file.

A script's first line says what it does. A line `-- uses a b` names libraries, other files of the
folder, that stand before it. What a package declares in Python and they use stands before them all.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from types import MappingProxyType

import msgspec

Argument = str | bytes | int | float

_LIBRARIES = re.compile(r"^-- uses +(.*)$", re.MULTILINE)


class Script(msgspec.Struct, frozen=True):
    """A script, and the digest under which a server knows it."""

    text: str
    digest: str

    def by_digest(self, keys: Sequence[str], *args: Argument) -> list[Argument]:
        """The command that runs it on a server that knows it."""
        return ["EVALSHA", self.digest, len(keys), *keys, *args]

    def by_text(self, keys: Sequence[str], *args: Argument) -> list[Argument]:
        """The command that runs it on any server. The text is sent along."""
        return ["EVAL", self.text, len(keys), *keys, *args]


class Scripts:
    """The scripts of one package, by name. Each is read once."""

    def __init__(
        self,
        package: str,
        prelude: Callable[[str], str] = lambda _: "",
        followed_by: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        """`prelude` is told a script with its libraries, and says what stands before it. Some
        libraries may be followed by others, where scripts are made in more than one form."""
        self._package = package
        self._followed_by = followed_by
        self._prelude = prelude
        self._made: dict[str, Script] = {}

    def __getitem__(self, name: str) -> Script:
        if name not in self._made:
            self._made[name] = self._put_together(name)
        return self._made[name]

    def _put_together(self, name: str) -> Script:
        first_line, _, rest = self._source(name).partition("\n")
        uses = _LIBRARIES.search(rest)
        names = uses[1].split() if uses else []
        wanted = (each for name in names for each in (name, *self._followed_by.get(name, ())))
        libraries = [self._source(library) for library in wanted]
        body = "\n".join([*libraries, rest])
        text = "\n".join([first_line, self._prelude(body), body])
        # The digest is Redis's own way to name scripts.
        return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())

    def _source(self, name: str) -> str:
        return files(self._package).joinpath("lua", f"{name}.lua").read_text("utf-8")
