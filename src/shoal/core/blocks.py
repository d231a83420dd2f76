"""Whether an answer is a block: the site serves somebody else, but not whoever asked like this.

A function of values. Strong signs stand alone. Weak ones need a second, for a page may well write
about captchas, and a short page may be a short page. Only the start of a body is looked at, and
only where there is some other reason to.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from statistics import median_low

import msgspec

from shoal.core.policy import REDIRECT_STATUSES, TOO_MANY

HEAD_BYTES = 8 * 1024
"""So much of a body is looked at: what tells people that they are blocked comes early."""
SMALL_BYTES = 8 * 1024
"""Pages of sites are seldom as small as this, those of their guards nearly always."""
FAR_SHORTER = 4
"""A body is far shorter than usual if it is less than this part of it."""

FORBIDDEN = 403
MARKED_BY = ("cf-mitigated", "x-amzn-waf-action")
"""Headers by which guards say that it is them who answer: challenge, captcha."""

ODD_STATUSES = frozenset({202, 401, 405, 406, 503, 999})
"""What guards answer with, and sites as well: a weak sign."""

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
"""What guards tell people, in lower case."""
_WIDGETS = (
    b"captcha",
    b"turnstile",
    b"_incapsula_resource",
    b"challenge-platform",
    b"awswaf",
)
"""What guards put into their pages, in lower case."""

_LOGIN = frozenset({"login", "log-in", "log_in", "logon", "signin", "sign-in", "sign_in"})
_CHALLENGE = frozenset({"challenge", "blocked", "access-denied", "accessdenied", "sorry"})
_PLACE = re.compile(r"(?:https?:)?//([^/?#.]*)[^/?#]*([^?#]*)|([^?#]*)", re.IGNORECASE)


class Block(msgspec.Struct, frozen=True):
    """An answer that is none."""

    kind: str
    """In a word or two: forbidden, too many requests, challenge, captcha, login, empty."""
    evidence: str = ""
    """What it was known by. One line."""


def find_block(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    url: str = "",
    usual_bytes: int = 0,
    may_be_empty: bool = False,
) -> Block | None:
    """What kind of block an answer is. None: it is none, as far as can be told.

    `url` is what was asked for, `usual_bytes` the median of the bodies of such pages; 0 if it is
    not known. An answer to a HEAD, say, may be empty.
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
    """Whether a guard says in a header that it is the one who answers."""
    return MARKED_BY[0] in headers or MARKED_BY[1] in headers


def _leads_to_guard(url: str, location: str) -> Block | None:
    """A redirect to where people log in, or show what they are; unless that was asked for."""
    kind = _guards_place(location)
    if kind is None or _guards_place(url) == kind:
        return None
    return Block(kind, "redirected there")


def leads_to_login(url: str, location: str) -> bool:
    """Whether a redirect leads to where people log in, by the looks of its address; unless that was
    asked for."""
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
    # Small pages are of their own kind on some sites: then both kinds of words have to be there.
    found = _words(body, needs_both=not is_odd and not is_short)
    if found is None:
        return None
    kind, words = found
    if is_short:
        return Block(kind, f"says {words}, {size:,} bytes instead of some {usual_bytes:,}")
    return Block(kind, f"says {words}")


def _is_usual(size: int, usual_bytes: int) -> bool:
    """Whether a page is about as long as others: most are, and need not be looked through. A block
    of just that length is missed; what a spider expects of a page finds it."""
    return usual_bytes * 2 <= size * 3 and size * 2 <= usual_bytes * 3


def _words(body: bytes, *, needs_both: bool = False) -> tuple[str, str] | None:
    """What of a guard's words is in the start of a body: the kind of block, and the words."""
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
    """How long the pages of each handler are: the median of the last ones."""

    LAST = 31
    ENOUGH = 8
    """With fewer pages, nothing is usual yet."""

    def __init__(self) -> None:
        self._last: dict[str, deque[int]] = {}
        self._usual: dict[str, int] = {}
        self._noted = 0

    def usual(self, handler: str) -> int:
        """The median; 0 while it is not known."""
        return self._usual.get(handler, 0)

    def note(self, handler: str, size: int) -> None:
        """One more page that was read. The median is taken anew every few pages."""
        last = self._last.setdefault(handler, deque(maxlen=self.LAST))
        last.append(size)
        self._noted += 1
        if len(last) >= self.ENOUGH and (len(last) < self.LAST or self._noted % 8 == 0):
            self._usual[handler] = median_low(last)
