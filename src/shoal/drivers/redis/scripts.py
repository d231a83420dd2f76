"""Loads Lua scripts from a package: folder `lua`, one script per file.

A script's first line stays first (`#!lua`, with its flags). A line `-- uses a b` names libraries,
other files of the folder, that are inserted before the rest. A prelude, made in Python by the
package, comes before the libraries.
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
    """A script and the digest by which a server knows it."""

    text: str
    digest: str

    def by_digest(self, keys: Sequence[str], *args: Argument) -> list[Argument]:
        """The command to run the script on a server that has loaded it."""
        return ["EVALSHA", self.digest, len(keys), *keys, *args]

    def by_text(self, keys: Sequence[str], *args: Argument) -> list[Argument]:
        """The command to run the script on any server. It contains the text."""
        return ["EVAL", self.text, len(keys), *keys, *args]


class Scripts:
    """The scripts of one package, by name. Each is read only once."""

    def __init__(
        self,
        package: str,
        prelude: Callable[[str], str] = lambda _: "",
        followed_by: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        """`prelude` gets a script with its libraries and returns the text to put before it.
        `followed_by` adds further libraries after some, to make a script in more than one form."""
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
        # Redis itself identifies scripts by their SHA-1 digest.
        return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())

    def _source(self, name: str) -> str:
        return files(self._package).joinpath("lua", f"{name}.lua").read_text("utf-8")
