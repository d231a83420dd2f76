"""Statements that lie in files beside the code: folder `sql` of a package."""

from __future__ import annotations

import re
from importlib.resources import files

_QUERY_NAME = re.compile(r"^-- ([a-z_]+): .*$", re.MULTILINE)


def load_schema(package: str, *names: str) -> list[str]:
    """The versions of a schema, oldest first: each .sql file leads from the one before."""
    return [load_script(package, name) for name in names]


def load_queries(package: str, name: str) -> dict[str, str]:
    """The statements of a .sql file, each under the name in its header: `-- name: what it does`."""
    parts = _QUERY_NAME.split(load_script(package, name))
    return {key: text.strip() for key, text in zip(parts[1::2], parts[2::2], strict=True)}


def load_script(package: str, name: str) -> str:
    """A .sql file as text."""
    return files(package).joinpath("sql", name).read_text("utf-8")
