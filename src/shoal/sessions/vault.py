"""Encodes the cookies of accounts for the frontier: as JSON, or encrypted with a key that the
frontier never sees.

Encrypted cookies start with a byte that JSON never starts with. They are bound to the name of the
account, so that somebody who can write to the frontier cannot pass off one account's cookies as
another's. If there is a key, unencrypted cookies are rejected, as anybody may have written them.
"""

from __future__ import annotations

import binascii
import os
from base64 import b64decode
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from shoal.core.cookies import EMPTY, Jar
from shoal.errors import ConfigError, MissingExtra
from shoal.sessions.sources import read_bytes

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
SETTING = "encrypt_key"

_SEALED = b"\x01"
_NONCE_BYTES = 12
_MOST_KEY_BYTES = 1_000
_WRITTEN = "write 32 bytes in base64 or hex"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Jar).decode


class Unreadable(ValueError):
    """Stored cookies cannot be read here. The message is the reason, in a few words."""


class Vault:
    """Encodes and decodes cookie jars, encrypted if there is a key."""

    def __init__(self, key: bytes | None = None) -> None:
        """Raises MissingExtra if there is a key but the package for encryption is missing."""
        self._cipher = _cipher(key) if key is not None else None

    @property
    def encrypts(self) -> bool:
        """Whether there is a key."""
        return self._cipher is not None

    def seal(self, identity: str, jar: Jar) -> bytes:
        """Encode a jar for the frontier. An empty jar becomes no bytes."""
        if not jar:
            return b""
        plain = _encode(jar)
        if self._cipher is None:
            return plain
        nonce = os.urandom(_NONCE_BYTES)
        return _SEALED + nonce + self._cipher.encrypt(nonce, plain, identity.encode())

    def unseal(self, identity: str, kept: bytes) -> Jar:
        """Decode a jar from the frontier. Raises Unreadable."""
        if not kept:
            return EMPTY
        try:
            return _decode(self._plain(identity, kept))
        except msgspec.MsgspecError:
            raise Unreadable("they are damaged") from None

    def _plain(self, identity: str, kept: bytes) -> bytes:
        if self._cipher is None:
            if is_sealed(kept):
                raise Unreadable(f"they are encrypted, and there is no key here ({SETTING})")
            return kept
        from cryptography.exceptions import InvalidTag  # Needs the extra `encrypt`.

        if not is_sealed(kept):
            raise Unreadable("they are not encrypted, as they should be")
        nonce, sealed = kept[1 : 1 + _NONCE_BYTES], kept[1 + _NONCE_BYTES :]
        try:
            return self._cipher.decrypt(nonce, sealed, identity.encode())
        except (InvalidTag, ValueError):
            raise Unreadable(
                f"they were encrypted with another key than that of {SETTING}"
            ) from None


def is_sealed(kept: bytes) -> bool:
    """Whether cookies are encrypted."""
    return kept.startswith(_SEALED)


def vault_of(source: str | None, environ: Mapping[str, str]) -> Vault:
    """Make the vault for a setting: with the key in file:PATH or env:NAME, or without a key.

    Raises ConfigError.
    """
    if not source:
        return Vault()
    try:
        return Vault(_key(source, environ))
    except MissingExtra:
        raise
    except ConfigError as error:
        raise ConfigError(f"{SETTING}: {error}") from None


def _key(source: str, environ: Mapping[str, str]) -> bytes:
    kind, _, rest = source.partition(":")
    if kind == "file":
        try:
            written = read_bytes(rest, _MOST_KEY_BYTES)
        except ConfigError as error:
            raise ConfigError(f"{rest}: {error}") from None
    elif kind == "env":
        written = environ.get(rest, "").encode("utf-8", "surrogateescape")
        if not written:
            raise ConfigError(f"{rest}: the variable is not set")
    else:
        # The value is not shown: it may be the key.
        raise ConfigError("write file:PATH or env:NAME")
    return _read_key(written.strip())


def _read_key(written: bytes) -> bytes:
    try:
        if len(written) == 2 * KEY_BYTES:
            return bytes.fromhex(written.decode("ascii"))
        key = b64decode(written.translate(bytes.maketrans(b"-_", b"+/")), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError(f"not a key: {_WRITTEN}") from None
    if len(key) != KEY_BYTES:
        raise ConfigError(f"a key of {len(key)} bytes: {_WRITTEN}")
    return key


def _cipher(key: bytes) -> AESGCM:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # Optional.
    except ImportError:
        raise MissingExtra("encrypting cookies", "encrypt") from None
    return AESGCM(key)
