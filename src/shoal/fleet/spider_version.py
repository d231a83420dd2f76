"""The version of the spider that a worker runs, for rollouts on many machines: a hash of its files.

Two workers with the same files report the same version, wherever the files are.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

MAX_FOLDERS = 1_000
MAX_FILES = 5_000
MAX_BYTES = 32 * 2**20
"""Limits on how much of a package is hashed, in order of names. Done once, before work begins."""

_OWN = __name__.partition(".")[0]


def spider_version(spider: type, said: str | None = None) -> str:
    """The version given in `said`; else a hash of the spider's file, or of all Python files of its
    package. Empty if it has no files, and for Shoal's own spiders, which Shoal's version covers."""
    if said is not None:
        return said
    try:
        return _hashed(_files_of(spider))
    except OSError:
        return ""


def _files_of(spider: type) -> Iterator[tuple[str, Path]]:
    """The files that make up the spider, each with its name within the package."""
    module = sys.modules.get(spider.__module__)
    package = (getattr(module, "__package__", None) or "").partition(".")[0]
    if package == _OWN:
        return
    if package:
        folder = Path(next(iter(sys.modules[package].__path__)))
        yield from islice(_in_folder(folder), MAX_FILES)
    elif file := getattr(module, "__file__", None):
        yield "", Path(file)


def _in_folder(folder: Path) -> Iterator[tuple[str, Path]]:
    for at, folders, names in islice(os.walk(folder), MAX_FOLDERS):
        folders[:] = sorted(name for name in folders if name.isidentifier())
        for name in sorted(names):
            if name.endswith(".py"):
                path = Path(at, name)
                yield path.relative_to(folder).as_posix(), path


def _hashed(files: Iterator[tuple[str, Path]]) -> str:
    digest, left, is_empty = hashlib.blake2b(digest_size=4), MAX_BYTES, True
    for name, path in files:
        with path.open("rb") as file:
            content = file.read(left)
        digest.update(f"{name}\0{len(content)}\0".encode("utf-8", "surrogateescape") + content)
        left, is_empty = left - len(content), False
    return "" if is_empty else digest.hexdigest()
