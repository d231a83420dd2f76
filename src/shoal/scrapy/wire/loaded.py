"""Finds classes by name among the modules that are loaded.

The names come from data. Looking for them imports nothing and runs no code.
"""

from __future__ import annotations

import sys
from typing import Any


def class_name(cls: type) -> str:
    """Return the name under which `find_class` finds a class."""
    return f"{cls.__module__}.{cls.__qualname__}"


def find_class(name: str) -> type | None:
    """Return a class by its name, if its module is loaded. Nothing is ever imported."""
    module, _, rest = name.rpartition(".")
    names = [rest]
    while module and module not in sys.modules:
        module, _, rest = module.rpartition(".")
        names.insert(0, rest)
    found: Any = sys.modules.get(module)
    for attribute in names:
        # Not `getattr`: modules and classes may run code to compute attributes.
        found = getattr(found, "__dict__", {}).get(attribute)
    return found if isinstance(found, type) else None
