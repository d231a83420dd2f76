"""Decides who may use the server: tokens and their roles, cookies, and a limit on wrong tokens.

Without tokens, everybody who can reach the server may do everything, so it listens on loopback
only. With tokens, programs send one as `Authorization: Bearer`. Browsers send one to /login and get
a cookie with the role and an expiry, signed with the token. So every coordinator with the same
token accepts the cookie, and none has to store it.
"""

from __future__ import annotations

import hmac
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

import msgspec

from shoal.errors import ConfigError

VARIABLE = "SHOAL_TOKEN"
MIN_LENGTH = 16
COOKIE = "shoal"
COOKIE_S = 12 * 3600
MAX_WRONG = 10
"""Wrong tokens allowed per address and minute. After that, even a valid token has to wait."""
WINDOW_S = 60.0
ADDRESSES_KEPT = 10_000

log = logging.getLogger("shoal")


class Role(StrEnum):
    """What a client may do: look, or also change things."""

    READ = "read"
    ADMIN = "admin"

    def may(self, wanted: Role) -> bool:
        """Whether this role is sufficient where `wanted` is required."""
        return self is Role.ADMIN or wanted is Role.READ


class Token(msgspec.Struct, frozen=True):
    """A secret, and the role of clients that have it."""

    role: Role
    secret: str

    def __repr__(self) -> str:
        return f"Token({self.role})"


def read_tokens(file: Path | None, environ: Mapping[str, str]) -> list[Token]:
    """The tokens of a file and of SHOAL_TOKEN. Raises ConfigError, which never quotes a token."""
    lines: list[str] = []
    if file is not None:
        try:
            lines = file.read_text("utf-8").splitlines()
            is_public = file.stat().st_mode & 0o004
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--token-file {file}: {error}") from None
        if is_public:
            log.warning("%s can be read by everybody on this machine", file)
    tokens = [
        _token(line, f"--token-file {file}, line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.startswith("#")
    ]
    if file is not None and not tokens:
        raise ConfigError(f"--token-file {file}: there is no token in it")
    if given := environ.get(VARIABLE):
        tokens.append(_token(given, VARIABLE))
    return tokens


def _token(line: str, where: str) -> Token:
    """Parse `TOKEN`, `admin TOKEN` or `read TOKEN`. Raises ConfigError."""
    words = line.split()
    role = words.pop(0) if len(words) == 2 else Role.ADMIN.value
    if len(words) != 1 or role not in set(Role):
        raise ConfigError(f"{where}: write a token, or `read` or `admin` and a token")
    if len(words[0]) < MIN_LENGTH or not words[0].isascii():
        raise ConfigError(f"{where}: a token has at least {MIN_LENGTH} characters, all ASCII")
    return Token(Role(role), words[0])


class Access:
    """Determines the role of a client from its token or cookie."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self.is_open = not tokens
        """Whether there are no tokens, so that everybody is an admin."""

    def role_of_token(self, given: str) -> Role | None:
        """The role of a token, the highest if it is listed twice. None: the token is not known."""
        found: Role | None = None
        for token in self._tokens:  # Always all of them, so that the time taken reveals nothing.
            is_it = hmac.compare_digest(token.secret.encode(), given.encode("utf-8", "replace"))
            if is_it and (found is None or token.role.may(found)):
                found = token.role
        return found

    def cookie_for(self, given: str, now: float) -> str:
        """A cookie for the holder of a token. The token must be a known one."""
        role = self.role_of_token(given)
        claims = f"{role}.{int(now) + COOKIE_S}"
        return f"{claims}.{_signed(claims, given)}"

    def role_of_cookie(self, cookie: str, now: float) -> Role | None:
        """The role that a cookie proves. None: its signature is wrong, or it has expired."""
        role, _, rest = cookie.partition(".")
        until, _, signature = rest.partition(".")
        if role not in set(Role) or not until.isdecimal() or len(until) > 12 or int(until) < now:
            return None
        claims = f"{role}.{until}"
        good = [
            hmac.compare_digest(_signed(claims, token.secret), signature)
            for token in self._tokens
            if token.role == role and signature.isascii()
        ]
        return Role(role) if any(good) else None


def _signed(claims: str, secret: str) -> str:
    return hmac.new(secret.encode(), f"shoal cookie {claims}".encode(), sha256).hexdigest()


class WrongTokens:
    """Counts wrong tokens by address. Keeps `ADDRESSES_KEPT` addresses and forgets the oldest."""

    def __init__(self) -> None:
        self._counts: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def wait_s(self, address: str, now: float) -> float:
        """How long this address has to wait before it may try another token; 0 if not at all."""
        since, count = self._counts.get(address, (now, 0))
        return max(since + WINDOW_S - now, 0.0) if count >= MAX_WRONG else 0.0

    def note(self, address: str, now: float) -> None:
        """Count one more wrong token from this address."""
        since, count = self._counts.pop(address, (now, 0))
        if now - since >= WINDOW_S:
            since, count = now, 0
        self._counts[address] = (since, count + 1)
        while len(self._counts) > ADDRESSES_KEPT:
            self._counts.popitem(last=False)
