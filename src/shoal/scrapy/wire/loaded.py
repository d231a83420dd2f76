"""Finding classes by their names, among the modules that are loaded.

Names come off a wire. Looking for them imports nothing and runs nobody's code.
"""

from __future__ import annotations

import sys
from typing import Any


def class_name(cls: type) -> str:
    """The name under which `find_class` finds a class."""
    return f"{cls.__module__}.{cls.__qualname__}"


def find_class(name: str) -> type | None:
    """A class by its name, if its module is loaded. Nothing is ever imported."""
    module, _, rest = name.rpartition(".")
    names = [rest]
    while module and module not in sys.modules:
        module, _, rest = module.rpartition(".")
        names.insert(0, rest)
    found: Any = sys.modules.get(module)
    for attribute in names:
        # Not `getattr`: modules and classes may make up attributes, and run code for that.
        found = getattr(found, "__dict__", {}).get(attribute)
    return found if isinstance(found, type) else None
