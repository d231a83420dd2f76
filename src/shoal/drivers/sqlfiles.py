"""Loads SQL statements from files beside the code: the folder `sql` of a package."""

from __future__ import annotations

import re
from importlib.resources import files

_QUERY_NAME = re.compile(r"^-- ([a-z_]+): .*$", re.MULTILINE)


def load_schema(package: str, *names: str) -> list[str]:
    """The versions of a schema, oldest first. Each .sql file upgrades from the previous version."""
    return [load_script(package, name) for name in names]


def load_queries(package: str, name: str) -> dict[str, str]:
    """The statements of a .sql file, by the names in their headers: `-- name: what it does`."""
    parts = _QUERY_NAME.split(load_script(package, name))
    return {key: text.strip() for key, text in zip(parts[1::2], parts[2::2], strict=True)}


def load_script(package: str, name: str) -> str:
    """The text of a .sql file."""
    return files(package).joinpath("sql", name).read_text("utf-8")
