"""Cookies of accounts, sealed and unsealed."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import pytest

from shoal.core.cookies import EMPTY, Cookie, Jar
from shoal.errors import ConfigError, MissingExtra
from shoal.sessions.vault import Unreadable, Vault, is_sealed, vault_of

CANARY = "canary-4711"
JAR = Jar((Cookie(name="sid", value=CANARY, domain="shop.example", http_only=True),))
KEY, OTHER = bytes(range(32)), bytes(range(1, 33))


def test_without_a_key_it_is_json() -> None:
    vault = Vault()
    kept = vault.seal("shop#alice", JAR)
    assert CANARY.encode() in kept
    assert not is_sealed(kept)
    assert vault.unseal("shop#alice", kept) == JAR


def test_with_a_key_nobody_reads_it() -> None:
    vault = Vault(KEY)
    kept = vault.seal("shop#alice", JAR)
    assert is_sealed(kept)
    assert CANARY.encode() not in kept
    assert b"sid" not in kept
    assert vault.unseal("shop#alice", kept) == JAR
    assert vault.seal("shop#alice", JAR) != kept, "the same cookies do not look the same"


@pytest.mark.parametrize("vault", [Vault(), Vault(KEY)])
def test_nothing_is_kept_of_no_cookies(vault: Vault) -> None:
    assert vault.seal("shop#alice", EMPTY) == b""
    assert vault.unseal("shop#alice", b"") == EMPTY


def test_what_cannot_be_read() -> None:
    sealed = Vault(KEY).seal("shop#alice", JAR)
    for vault, identity, kept, says in (
        (Vault(OTHER), "shop#alice", sealed, "they were encrypted with another key"),
        (Vault(KEY), "shop#bob", sealed, "they were encrypted with another key"),
        (Vault(KEY), "shop#alice", sealed[:-1] + b"x", "they were encrypted with another key"),
        (Vault(KEY), "shop#alice", sealed[:5], "they were encrypted with another key"),
        (Vault(KEY), "shop#alice", Vault().seal("shop#alice", JAR), "they are not encrypted"),
        (Vault(), "shop#alice", sealed, "they are encrypted, and there is no key here"),
        (Vault(), "shop#alice", b'[[{"name": "x"}]]', "they are damaged"),
        (Vault(), "shop#alice", b"\xff", "they are damaged"),
    ):
        with pytest.raises(Unreadable, match=f"^{says}") as raised:
            vault.unseal(identity, kept)
        assert CANARY not in str(raised.value)


def test_keys_are_base64_or_hex(tmp_path: Path) -> None:
    standard, safe = base64.b64encode(KEY).decode(), base64.urlsafe_b64encode(OTHER).decode()
    sealed = Vault(KEY).seal("shop#alice", JAR)
    for written in (standard, KEY.hex(), KEY.hex().upper()):
        assert vault_of("env:KEY", {"KEY": written}).unseal("shop#alice", sealed) == JAR
    assert vault_of("env:KEY", {"KEY": safe}).encrypts
    (tmp_path / "key").write_text(f"{standard}\n")
    assert vault_of(f"file:{tmp_path}/key", {}).unseal("shop#alice", sealed) == JAR
    assert not vault_of(None, {}).encrypts


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (CANARY, "write file:PATH or env:NAME"),
        ("env:NONE", "NONE: the variable is not set"),
        ("file:/none", "/none: No such file or directory"),
        ("env:SHORT", "a key of 3 bytes: write 32 bytes in base64 or hex"),
        ("env:ODD", "not a key: write 32 bytes in base64 or hex"),
    ],
)
def test_what_is_no_key_is_told_in_one_line(source: str, says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        vault_of(source, {"SHORT": "AAAA", "ODD": f"{CANARY}!"})
    assert str(raised.value) == f"encrypt_key: {says}"


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(MissingExtra, match=r"pip install 'shoal\[encrypt\]'"):
        Vault(KEY)
