"""Signs webhooks by https://www.standardwebhooks.com, for which there are libraries to verify them.

The signature covers the message's id, the time and the body. So nobody can change them unnoticed,
and a receiver can reject an old message that is sent again.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode, b64encode
from hashlib import sha256

_PREFIX = "whsec_"


def signed_headers(secret: str | None, message_id: str, at: float, body: bytes) -> dict[str, str]:
    """The headers of a message, with a signature if there is a secret. `message_id` stays the same
    if the same message is sent again."""
    stamp = str(int(at))
    headers = {"webhook-id": message_id, "webhook-timestamp": stamp}
    if secret:
        signed = b".".join((message_id.encode(), stamp.encode(), body))
        digest = hmac.new(_key(secret), signed, sha256).digest()
        headers["webhook-signature"] = f"v1,{b64encode(digest).decode()}"
    return headers


def _key(secret: str) -> bytes:
    """The key of a secret: base64 after `whsec_`, else the text itself."""
    if secret.startswith(_PREFIX):
        try:
            return b64decode(secret.removeprefix(_PREFIX), validate=True)
        except (binascii.Error, ValueError):
            pass
    return secret.encode()
