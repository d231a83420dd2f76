"""Suggestions for misspelt names in error messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MAX_SHOWN = 80
MAX_NAMES = 20


def nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name most like this one. None if none is at least `likeness` (0 to 1) similar."""
    return next(iter(get_close_matches(name[:MAX_SHOWN], sorted(known), 1, likeness)), None)


def meant(name: str, known: Iterable[str]) -> str:
    """A hint such as `; did you mean product?`, or an empty text."""
    near = nearest(name, known)
    return f"; did you mean {near}?" if near else ""


def no_such(kind: str, name: str, known: Iterable[str]) -> str:
    """An error message: no `kind` has this name, and which one was meant, or which exist."""
    names, shown = sorted(known), name[:MAX_SHOWN]
    if near := meant(name, names):
        return f"no {kind} {shown!r}{near}"
    said = ", ".join(names[:MAX_NAMES]) + (", ..." if len(names) > MAX_NAMES else "")
    return f"no {kind} {shown!r} (there are: {said or 'none'})"
