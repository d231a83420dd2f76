"""Keeps secrets out of messages: they say what failed, but no password."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

HIDDEN = "***"
SHORT = 4
"""A secret shorter than this cannot be cut out of a text: the rest of the words would show it."""


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return the text with all secrets cut out, in whatever encoding they occur. Empty if the text
    cannot be shown."""
    for spelled in sorted(set(_spellings(secrets)), key=len, reverse=True):
        if spelled in text:
            if len(spelled) < SHORT:
                return ""
            text = text.replace(spelled, HIDDEN)
    return text


def _spellings(secrets: Iterable[str]) -> Iterator[str]:
    """Yield secrets as they are, and as URLs, forms, JSON and Python write them."""
    for secret in secrets:
        if secret:
            yield secret
            yield quote(secret)
            yield quote(secret, safe="")
            yield quote_plus(secret)
            yield json.dumps(secret)[1:-1]
            yield repr(secret)[1:-1]
