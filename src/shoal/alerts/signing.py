"""Webhooks are signed as https://www.standardwebhooks.com has it: there are libraries to check it.

The signature is over the message's id, the time and the body, so that nobody can change them, and
nobody can send an old message again.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode, b64encode
from hashlib import sha256

_PREFIX = "whsec_"


def signed_headers(secret: str | None, message_id: str, at: float, body: bytes) -> dict[str, str]:
    """The headers of a message. The id is that of the message, however often it is sent."""
    stamp = str(int(at))
    headers = {"webhook-id": message_id, "webhook-timestamp": stamp}
    if secret:
        said = b".".join((message_id.encode(), stamp.encode(), body))
        made = hmac.new(_key(secret), said, sha256).digest()
        headers["webhook-signature"] = f"v1,{b64encode(made).decode()}"
    return headers


def _key(secret: str) -> bytes:
    """What follows `whsec_` is base64. Any other secret is taken as it is."""
    if secret.startswith(_PREFIX):
        try:
            return b64decode(secret.removeprefix(_PREFIX), validate=True)
        except (binascii.Error, ValueError):
            pass
    return secret.encode()
