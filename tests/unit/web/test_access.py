"""Tokens, roles, cookies, and the limit on wrong tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.errors import ConfigError
from shoal.web.access import (
    COOKIE_S,
    MAX_WRONG,
    WINDOW_S,
    Access,
    Role,
    Token,
    WrongTokens,
    read_tokens,
)

ADMIN = Token(Role.ADMIN, "a" * 20)
READ = Token(Role.READ, "r" * 20)
NOW = 1_800_000_000.0


def test_tokens_have_their_roles(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# ours\n{ADMIN.secret}\n\nread {READ.secret}\n")
    file.chmod(0o600)

    assert read_tokens(file, {"SHOAL_TOKEN": "x" * 16}) == [
        ADMIN,
        READ,
        Token(Role.ADMIN, "x" * 16),
    ]


@pytest.mark.parametrize(
    "text", ["", "short", "root " + "x" * 20, "read a b " + "x" * 20, "é" * 20]
)
def test_what_is_no_token_is_refused_and_not_told(text: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        read_tokens(file, {})
    assert "xxxx" not in str(refused.value)
    assert "short" not in str(refused.value)


def test_a_token_is_shown_nowhere() -> None:
    assert ADMIN.secret not in repr(ADMIN)


def test_roles() -> None:
    access = Access([READ, ADMIN])
    assert access.role_of_token(ADMIN.secret) is Role.ADMIN
    assert access.role_of_token(READ.secret) is Role.READ
    assert access.role_of_token("") is None
    assert access.role_of_token("\ud800") is None
    assert Role.ADMIN.may(Role.READ)
    assert not Role.READ.may(Role.ADMIN)


def test_a_cookie_is_accepted_by_every_server_with_the_token_until_it_ends() -> None:
    cookie = Access([READ]).cookie_for(READ.secret, NOW)
    other = Access([ADMIN, READ])

    assert other.role_of_cookie(cookie, NOW + COOKIE_S - 1) is Role.READ
    assert other.role_of_cookie(cookie, NOW + COOKIE_S + 1) is None
    assert Access([ADMIN]).role_of_cookie(cookie, NOW) is None
    assert Access([Token(Role.READ, "z" * 20)]).role_of_cookie(cookie, NOW) is None


def test_a_cookie_cannot_be_changed() -> None:
    access = Access([READ, ADMIN])
    role, until, signature = access.cookie_for(READ.secret, NOW).split(".")

    for forged in (
        f"admin.{until}.{signature}",
        f"{role}.{int(until) + 1}.{signature}",
        f"{role}.{until}.",
        f"{role}.{until}.é",
        f"{role}.{'9' * 5000}.{signature}",
        "",
        "..",
    ):
        assert access.role_of_cookie(forged, NOW) is None


def test_wrong_tokens_are_limited_by_address() -> None:
    wrong = WrongTokens()
    for _ in range(MAX_WRONG):
        assert wrong.wait_s("there", NOW) == 0
        wrong.note("there", NOW)

    assert wrong.wait_s("there", NOW + 1) == WINDOW_S - 1
    assert wrong.wait_s("elsewhere", NOW) == 0
    assert wrong.wait_s("there", NOW + WINDOW_S) == 0


def test_addresses_are_not_kept_for_ever() -> None:
    wrong = WrongTokens()
    for number in range(20_000):
        wrong.note(str(number), NOW)

    assert len(wrong._counts) == 10_000
