"""Recognises blocks: responses by which a site refuses this client, although it serves others.

A function of values. One strong sign is enough. A weak one needs a second, because a page may well
write about captchas, and a short page may just be short. Only the start of a body is searched, and
only if there is another reason to.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from statistics import median_low

import msgspec

from shoal.core.policy import REDIRECT_STATUSES, TOO_MANY

HEAD_BYTES = 8 * 1024
"""How much of a body is searched: a message that tells people they are blocked comes early."""
SMALL_BYTES = 8 * 1024
"""Few pages of sites are this small, but nearly all block pages are."""
FAR_SHORTER = 4
"""A body is far shorter than usual if it is shorter than the usual size divided by this."""

FORBIDDEN = 403
MARKED_BY = ("cf-mitigated", "x-amzn-waf-action")
"""Headers by which bot protection says that the response is its own: challenge, captcha."""

ODD_STATUSES = frozenset({202, 401, 405, 406, 503, 999})
"""Statuses that bot protection uses, and sites as well: a weak sign."""

_SAID = (
    b"just a moment",
    b"you are human",
    b"you're human",
    b"human verification",
    b"checking your browser",
    b"not a robot",
    b"are you a robot",
    b"unusual traffic",
    b"automated queries",
    b"automated access",
    b"automated requests",
    b"access denied",
    b"been blocked",
    b"enable javascript and cookies",
    b"pardon our interruption",
)
"""What block pages tell people, in lower case."""
_WIDGETS = (
    b"captcha",
    b"turnstile",
    b"_incapsula_resource",
    b"challenge-platform",
    b"awswaf",
)
"""What bot protection puts into its pages, in lower case."""

_LOGIN = frozenset({"login", "log-in", "log_in", "logon", "signin", "sign-in", "sign_in"})
_CHALLENGE = frozenset({"challenge", "blocked", "access-denied", "accessdenied", "sorry"})
_PLACE = re.compile(r"(?:https?:)?//([^/?#.]*)[^/?#]*([^?#]*)|([^?#]*)", re.IGNORECASE)


class Block(msgspec.Struct, frozen=True):
    """A response that is a block, and why."""

    kind: str
    """A word or two: forbidden, too many requests, challenge, captcha, login, empty."""
    evidence: str = ""
    """What it was recognised by. One line."""


def find_block(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    url: str = "",
    usual_bytes: int = 0,
    may_be_empty: bool = False,
) -> Block | None:
    """The kind of block that a response is. None if it is none, as far as can be told.

    `url` is the address that was requested. `usual_bytes` is the median size of such pages, 0 if
    unknown. `may_be_empty` is for responses without a body, such as those to HEAD.
    """
    if (marked := _marked(headers)) is not None:
        return marked
    if status in (FORBIDDEN, TOO_MANY):
        plain = "forbidden" if status == FORBIDDEN else "too many requests"
        found = _words(body)
        return Block(found[0], f"says {found[1]}") if found else Block(plain)
    if status in REDIRECT_STATUSES:
        return _leads_to_guard(url, headers.get("Location") or "")
    if status == 200 and not may_be_empty and (not body or (len(body) < 64 and not body.strip())):
        return Block("empty", "an empty page")
    return _weak_signs(status, body, usual_bytes)


def _marked(headers: Mapping[str, str]) -> Block | None:
    for name in MARKED_BY:
        if name in headers:
            value = headers[name].strip().lower()[:40]
            kind = value if value in ("challenge", "captcha") else "challenge"
            return Block(kind, f"{name}: {value}")
    return None


def is_marked(headers: Mapping[str, str]) -> bool:
    """Whether a header says that the response comes from bot protection."""
    return MARKED_BY[0] in headers or MARKED_BY[1] in headers


def _leads_to_guard(url: str, location: str) -> Block | None:
    """The block if a redirect leads to a login, challenge or captcha page that was not
    requested."""
    kind = _guards_place(location)
    if kind is None or _guards_place(url) == kind:
        return None
    return Block(kind, "redirected there")


def leads_to_login(url: str, location: str) -> bool:
    """Whether a redirect leads to a login page that was not requested, by the look of its
    address."""
    return _guards_place(location) == "login" != _guards_place(url)


def _guards_place(address: str) -> str | None:
    place = _PLACE.match(address[:2_000])
    if place is None:
        return None
    host, path = (place[1] or "").lower(), (place[2] or place[3] or "").lower()
    names = {segment.partition(".")[0] for segment in (host, *path.split("/"))}
    if "captcha" in path:
        return "captcha"
    if names & _CHALLENGE:
        return "challenge"
    return "login" if names & _LOGIN else None


def _weak_signs(status: int, body: bytes, usual_bytes: int) -> Block | None:
    size, is_page = len(body), 200 <= status < 300
    is_odd = status in ODD_STATUSES
    is_short = is_page and size * FAR_SHORTER < usual_bytes
    is_small = is_page and size <= SMALL_BYTES and not _is_usual(size, usual_bytes)
    if not (is_odd or is_short or is_small):
        return None
    # Some sites have small pages of their own, so these need both kinds of words.
    found = _words(body, needs_both=not is_odd and not is_short)
    if found is None:
        return None
    kind, words = found
    if is_short:
        return Block(kind, f"says {words}, {size:,} bytes instead of some {usual_bytes:,}")
    return Block(kind, f"says {words}")


def _is_usual(size: int, usual_bytes: int) -> bool:
    """Whether a page is about as long as others, and so need not be searched: most pages are.

    A block page of just that length is missed, unless the spider's expectations of the page reveal
    it.
    """
    return usual_bytes * 2 <= size * 3 and size * 2 <= usual_bytes * 3


def _words(body: bytes, *, needs_both: bool = False) -> tuple[str, str] | None:
    """The kind of block, and the typical words of block pages found at the start of a body."""
    head = body[:HEAD_BYTES].lower()
    widget = next((word for word in _WIDGETS if word in head), b"")
    if needs_both and not widget:
        return None
    said = next((word for word in _SAID if word in head), b"")
    if not (said and widget if needs_both else said or widget):
        return None
    kind = "captcha" if widget == b"captcha" else "challenge"
    words = " and ".join(f"'{word.decode()}'" for word in (said, widget) if word)
    return kind, words


class UsualSizes:
    """The usual size of each handler's pages: the median of the most recent ones."""

    LAST = 31
    ENOUGH = 8
    """With fewer pages there is no usual size yet."""

    def __init__(self) -> None:
        self._last: dict[str, deque[int]] = {}
        self._usual: dict[str, int] = {}
        self._noted = 0

    def usual(self, handler: str) -> int:
        """The median size; 0 while it is unknown."""
        return self._usual.get(handler, 0)

    def note(self, handler: str, size: int) -> None:
        """Add the size of one more page. The median is updated every few pages."""
        last = self._last.setdefault(handler, deque(maxlen=self.LAST))
        last.append(size)
        self._noted += 1
        if len(last) >= self.ENOUGH and (len(last) < self.LAST or self._noted % 8 == 0):
            self._usual[handler] = median_low(last)
