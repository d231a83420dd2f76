"""Makes text from outside safe to show: URLs, reasons, titles, tracebacks.

Pages choose what their URLs contain. A terminal obeys some characters (move, erase, rename the
window), some reverse the direction of text, and a line break makes one line look like two.
Everything that shows text, on a terminal or in a log, goes through here: such characters are
written out, as `\\x1b`.
"""

from __future__ import annotations

import re
from typing import Any

_UNSEEN = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except tab and line feed, DEL, C1.
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # Characters that change text direction.
    r"\u2028\u2029"  # More line breaks.
    r"\ud800-\udfff"  # Lone surrogates, which cannot be encoded.
)
_IN_LINES = re.compile(f"[{_UNSEEN}]")
_IN_ONE_LINE = re.compile(f"[\t\n{_UNSEEN}]")
_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def one_line(text: str) -> str:
    """The text as one line, without anything that a terminal would obey."""
    return _IN_ONE_LINE.sub(_written_out, text)


def lines(text: str) -> str:
    """The same for text of several lines: line feeds and tabs are kept."""
    return _IN_LINES.sub(_written_out, text)


def in_json(text: str) -> str:
    """The same for JSON, whose meaning does not change. Its line feeds are only between values."""
    return _IN_LINES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _written_out(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def shown(value: Any) -> str:
    """A value as errors show it: its repr, truncated if it is long."""
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"
