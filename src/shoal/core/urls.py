"""The identity of a URL: whether two spellings are one address, and which host it belongs to.

Comparisons use the normal form. Requests are sent to the address as the page spelled it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

import can_ada
import msgspec

from shoal.errors import BadUrl, ConfigError

TRACKING_PARAMETERS = (
    "utm_*",
    "_ga",
    "_gl",
    "dclid",
    "fbclid",
    "gbraid",
    "gclid",
    "igshid",
    "mc_cid",
    "mc_eid",
    "msclkid",
    "wbraid",
    "yclid",
)
"""Query parameters that tell where a visitor came from, never which page it is."""

MAX_URL_LENGTH = 8000

FINGERPRINT_BYTES = 8
"""64 bits: at ten million URLs the odds of any collision are three in a million."""

_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class Identity(msgspec.Struct, frozen=True):
    """The identity of a URL."""

    normal: str
    """The spelling that stands for all spellings of this address."""
    site: str
    """The host by which it is scheduled, with its port unless that is the scheme's default."""


class Normaliser:
    """Turns URLs into identities, and knows which query parameters do not count."""

    def __init__(self, dropped_parameters: Iterable[str] = TRACKING_PARAMETERS) -> None:
        dropped = tuple(dropped_parameters)
        self._names = frozenset(p for p in dropped if not p.endswith("*"))
        self._prefixes = tuple(p[:-1] for p in dropped if p.endswith("*"))

    def identify(self, url: str) -> Identity:
        """The identity of an absolute http(s) URL. Raises BadUrl for anything else."""
        parsed = parse(url)
        bare, _, query = parsed.href.partition("#")[0].partition("?")
        if "%" in bare:
            bare = _same_escapes(bare)
        if query:
            query = self._normal_query(query)
        return Identity(f"{bare}?{query}" if query else bare, parsed.host)

    def _normal_query(self, query: str) -> str:
        if "%" in query:
            query = _same_escapes(query)
        return "&".join(sorted(pair for pair in query.split("&") if pair and self._counts(pair)))

    def _counts(self, pair: str) -> bool:
        name = pair.partition("=")[0]
        return name not in self._names and not name.startswith(self._prefixes)


def parse(url: str) -> can_ada.URL:
    """Parse an absolute http(s) URL as browsers do. Raises BadUrl.

    A dot at the end of the host's name is removed: with and without it, it is the same host.
    """
    try:
        parsed = can_ada.parse(url)
    except (ValueError, TypeError):  # TypeError: can_ada rejects lone surrogates
        raise BadUrl(f"not a URL: {_shown(url)}{_missing_scheme(url)}") from None
    if parsed.protocol not in ("http:", "https:"):
        raise BadUrl(f"not an http(s) URL: {_shown(url)}")
    host = parsed.host
    if host.endswith(".") or ".:" in host:
        _drop_dot(parsed)
    return parsed


def _missing_scheme(url: str) -> str:
    """What to add to the message if somebody wrote `shop.example`."""
    if not url or url.lower().startswith(("http:", "https:")):
        return ""
    return " (it must begin with https:// or http://)"


def _drop_dot(parsed: can_ada.URL) -> None:
    name = parsed.hostname
    if not name.endswith(".."):  # Two dots are invalid, and so is the name with one of them.
        parsed.hostname = name[:-1]


def join(base: can_ada.URL, link: str) -> str:
    """The absolute address of a link found on a page, without its fragment. Raises BadUrl."""
    try:
        joined = base + link
    except (ValueError, TypeError):
        raise BadUrl(f"not a URL: {_shown(link)}") from None
    href = joined.href
    if not href.startswith(("http://", "https://")):
        raise BadUrl(f"not an http(s) URL: {_shown(link)}")
    return href.partition("#")[0] if "#" in href else href


def digest(normal: str, method: str = "GET", body: bytes = b"", *more: str) -> bytes:
    """Sixteen bytes that identify a request; the first eight are its fingerprint.

    `more` distinguishes requests that are otherwise the same.
    """
    is_plain = method == "GET" and not body and not more
    identity = normal if is_plain else f"{' '.join((method, normal, *more))}\n"
    whole = identity.encode("utf-8", "surrogatepass") + body
    return hashlib.blake2b(whole, digest_size=16).digest()


def fingerprint(normal: str, method: str = "GET", body: bytes = b"") -> bytes:
    """The short digest by which the frontier knows a request."""
    return digest(normal, method, body)[:FINGERPRINT_BYTES]


def number_of(fingerprint: bytes) -> int:
    """A fingerprint as tables store it: a signed 64-bit number."""
    return int.from_bytes(fingerprint, signed=True)


def fingerprint_of(number: int) -> bytes:
    """The fingerprint that tables store as this number."""
    return number.to_bytes(FINGERPRINT_BYTES, signed=True)


def allowed_host(written: str) -> str:
    """A host as a user wrote it, in the spelling of `Identity.site`. Raises BadUrl."""
    parsed = parse(f"http://{written}/")
    if parsed.pathname != "/" or parsed.search or parsed.has_credentials():
        raise BadUrl(f"not a host: {_shown(written)}")
    return parsed.host.removesuffix(":443")


def check_hosts(written: Iterable[str]) -> None:
    """Raise ConfigError if one of these is not a host."""
    for host in written:
        try:
            allowed_host(host)
        except BadUrl:
            raise ConfigError(f"not a host: {_shown(host)} (write it like shop.example)") from None


def without_port(site: str) -> str:
    """The host name of a site."""
    return site.rpartition(":")[0] if ":" in site and not site.endswith("]") else site


def host_matches(site: str, allowed: Iterable[str]) -> bool:
    """Whether a site is one of the allowed hosts, or a subdomain of one.

    `shop.example` allows `www.shop.example` and any port; `shop.example:8080` only that port.
    """
    name = without_port(site)
    return any(
        site == host or name == host or name.endswith("." + host) or site.endswith("." + host)
        for host in allowed
    )


def _same_escapes(text: str) -> str:
    """Normalise percent escapes (RFC 3986): upper case, and none where none is needed."""
    return _ESCAPE.sub(_same_escape, _BARE_PERCENT.sub("%25", text))


def _same_escape(match: re.Match[str]) -> str:
    escape = match.group()
    char = chr(int(escape[1:], 16))
    return char if char in _UNRESERVED else escape.upper()


def _shown(url: str) -> str:
    """A URL for an error message: short, and harmless on a terminal."""
    return repr(url if len(url) <= 200 else url[:200] + "…")
