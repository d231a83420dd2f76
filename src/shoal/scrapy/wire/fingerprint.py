"""Turns Scrapy's request fingerprints into fingerprints of tasks."""

from __future__ import annotations

import hashlib
from typing import Protocol

from scrapy import Request

from shoal.core.urls import FINGERPRINT_BYTES
from shoal.scrapy.wire.sessions import is_session


class Fingerprinter(Protocol):
    """The interface of `crawler.request_fingerprinter`."""

    def fingerprint(self, request: Request) -> bytes: ...


def short_fingerprint(fingerprint: bytes, session: str | None = None) -> bytes:
    """Return Scrapy's fingerprint of a request at the length of a task's. Two sessions see two
    pages.

    It is hashed once more: fingerprints that a project makes itself may be short, or differ only at
    the end.
    """
    if is_session(session):
        fingerprint += f"\0session {session}".encode()
    return hashlib.blake2b(fingerprint, digest_size=FINGERPRINT_BYTES).digest()
