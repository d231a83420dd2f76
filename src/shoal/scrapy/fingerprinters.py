"""Request fingerprints as scrapy-redis made them, which differ from Scrapy's.

For REQUEST_FINGERPRINTER_CLASS, in a project that continues with a dupefilter of scrapy-redis: the
fingerprints in it can be compared with no others.
"""

from __future__ import annotations

import hashlib
import json

from scrapy import Request
from scrapy.utils.python import to_bytes
from w3lib.url import canonicalize_url


class ScrapyRedisFingerprinter:
    """Fingerprints as scrapy-redis makes them since 0.8."""

    def fingerprint(self, request: Request) -> bytes:
        """Return the SHA-1 of the request's method, URL and body, as JSON."""
        identity = {
            "body": request.body.hex(),
            "method": request.method,
            "url": canonicalize_url(request.url),
        }
        return hashlib.sha1(json.dumps(identity).encode(), usedforsecurity=False).digest()


class OldScrapyRedisFingerprinter:
    """Fingerprints as scrapy-redis made them up to 0.7."""

    def fingerprint(self, request: Request) -> bytes:
        """Return the SHA-1 of the request's method, URL and body, one after the other."""
        identity = to_bytes(request.method) + to_bytes(canonicalize_url(request.url))
        return hashlib.sha1(identity + request.body, usedforsecurity=False).digest()
