"""Names that somebody has misspelt, for an error that says what was meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MAX_SHOWN = 80
MAX_NAMES = 20


def no_such(kind: str, name: str, known: Iterable[str]) -> str:
    """Says that there is no `kind` of this name, and which was meant, or which there are."""
    names, shown = sorted(known), name[:MAX_SHOWN]
    if near := get_close_matches(shown, names, 1):
        return f"no {kind} {shown!r}; did you mean {near[0]}?"
    said = ", ".join(names[:MAX_NAMES]) + (", ..." if len(names) > MAX_NAMES else "")
    return f"no {kind} {shown!r} (there are: {said or 'none'})"
