"""Keeping secrets out of what is told: what failed is said, with whose password is not."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

HIDDEN = "***"
SHORT = 4
"""A secret that is shorter cannot be cut out: what is left of the words would show it."""


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """The text with all of them cut out, however they are written. Empty if it cannot be told."""
    for spelled in sorted(set(_spellings(secrets)), key=len, reverse=True):
        if spelled in text:
            if len(spelled) < SHORT:
                return ""
            text = text.replace(spelled, HIDDEN)
    return text


def _spellings(secrets: Iterable[str]) -> Iterator[str]:
    """As they are, and as addresses, forms, JSON and Python write them."""
    for secret in secrets:
        if secret:
            yield secret
            yield quote(secret)
            yield quote(secret, safe="")
            yield quote_plus(secret)
            yield json.dumps(secret)[1:-1]
            yield repr(secret)[1:-1]
