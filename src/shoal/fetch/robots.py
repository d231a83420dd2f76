"""Decides what robots.txt allows. No I/O: the worker fetches it, the frontier shares the result.

A site's robots.txt is as untrusted as its pages: whatever it contains, reading it takes bounded
time and memory, and never fails.
"""

from __future__ import annotations

import re
from collections import OrderedDict

from protego import Protego

from shoal.core import urls
from shoal.core.policy import REDIRECT_STATUSES
from shoal.core.records import Robots
from shoal.errors import BadUrl, FetchError
from shoal.fetch.port import Response

ROBOTS_PATH = "/robots.txt"

MAX_HOPS = 5
"""How many redirects of a robots.txt are followed, each with its own permission (RFC 9309)."""

MAX_BYTES = 500 * 1024
"""The part of a robots.txt that is read (RFC 9309)."""

TTL_S = 24 * 3600.0
ERROR_TTL_S = 60.0
MAX_CRAWL_DELAY_S = 300

CACHE_CHARACTERS = 1_000_000
"""How much text may have its rules in memory. Parsed, the worst text takes eighty times its size.
"""

_ENTRY_CHARACTERS = 1000
"""The cost of an entry besides its text, in characters."""

_agent_line = re.compile(r"\s*user(?:-|\s*)agent(?:\s*:\s*|\s+)([^#]*)", re.IGNORECASE).match
_product = re.compile(r"[^\s/]*").match


class RobotsGate:
    """Says which URLs one user agent may fetch. Keeps the rules of recent hosts in memory."""

    def __init__(self, user_agent: str) -> None:
        self._agent = _product_of(user_agent)
        self._cache: OrderedDict[tuple[str, float], RobotsRules] = OrderedDict()
        self._cached_characters = 0

    def read(self, answer: Response | FetchError) -> Robots:
        """Turn the answer to a request for robots.txt into the record that the fleet shares.

        A redirect that was not followed any further counts as no robots.txt at all.
        """
        if isinstance(answer, FetchError):
            return Robots("", ERROR_TTL_S, error=f"robots.txt: {answer}")
        if answer.status == 429 or not 200 <= answer.status < 500:
            return Robots("", ERROR_TTL_S, error=f"robots.txt: HTTP {answer.status}")
        if answer.status >= 300:
            return Robots("", TTL_S)
        text = text_of(answer.body)
        return Robots(text, TTL_S, RobotsRules(text, self._agent).crawl_delay_s)

    def rules_of(self, robots: Robots) -> RobotsRules:
        """The rules of a robots.txt for this user agent."""
        return RobotsRules(robots.text, self._agent, closed=bool(robots.error))

    def allows(self, host: str, robots_at: float, robots: Robots, url: str) -> bool:
        """Whether a URL of the host may be fetched. `robots_at` tells robots.txt versions apart."""
        known = self.recall(host, robots_at, url)
        if known is not None:
            return known
        rules = self.rules_of(robots)
        self._remember((host, robots_at), rules)
        return rules.allow(url)

    def recall(self, host: str, robots_at: float, url: str) -> bool | None:
        """Whether a URL may be fetched, by the rules in memory. None if there are no rules in
        memory: ask the frontier for the robots.txt, then call `allows`."""
        rules = self._cache.get((host, robots_at))
        if rules is None:
            return None
        self._cache.move_to_end((host, robots_at))
        return rules.allow(url)

    def _remember(self, key: tuple[str, float], rules: RobotsRules) -> None:
        self._cache[key] = rules
        self._cached_characters += rules.characters
        while self._cached_characters > CACHE_CHARACTERS and len(self._cache) > 1:
            _, oldest = self._cache.popitem(last=False)
            self._cached_characters -= oldest.characters


class RobotsRules:
    """The rules of one robots.txt for one user agent."""

    def __init__(self, text: str, agent: str, *, closed: bool = False) -> None:
        self.characters = len(text) + _ENTRY_CHARACTERS
        self._closed = closed
        self._agent = agent
        self._parsed = Protego.parse(_addressed(text, agent))

    def allow(self, url: str) -> bool:
        """Whether a URL may be fetched. The robots.txt itself always may (RFC 9309)."""
        if self._closed:
            return False
        parsed = urls.parse(url)
        return self._parsed.can_fetch(parsed.href, self._agent) or parsed.pathname == ROBOTS_PATH

    @property
    def crawl_delay_s(self) -> float:
        """The time between two requests that the site asks for, at most `MAX_CRAWL_DELAY_S`."""
        delay_s = self._parsed.crawl_delay(self._agent)
        if delay_s is not None:
            return float(min(delay_s, MAX_CRAWL_DELAY_S))
        rate = self._parsed.request_rate(self._agent)
        if rate is None:
            return 0.0
        # Limit before dividing: the integers may be too large for a float.
        return min(rate.seconds, MAX_CRAWL_DELAY_S * rate.requests) / rate.requests


def robots_url(url: str) -> str:
    """The URL of the robots.txt for a URL. Raises BadUrl."""
    parsed = urls.parse(url)
    return f"{parsed.protocol}//{parsed.host}{ROBOTS_PATH}"


def next_hop(answer: Response) -> str | None:
    """The URL that a robots.txt redirects to. None without a redirect or a valid target."""
    location = answer.headers.get("Location")
    if answer.status not in REDIRECT_STATUSES or location is None:
        return None
    try:
        return urls.join(urls.parse(answer.url), location)
    except (BadUrl, TypeError):  # TypeError: the bytes are not text.
        return None


def text_of(body: bytes) -> str:
    """The text of a robots.txt, up to `MAX_BYTES`."""
    text = body[:MAX_BYTES].decode("utf-8", "replace").removeprefix("\ufeff")
    if len(body) <= MAX_BYTES:
        return text
    # Drop the last line: it is cut off, and the rest of it may mean something else.
    return text[: max(text.rfind("\n"), text.rfind("\r")) + 1]


def _addressed(text: str, agent: str) -> str:
    """The text with every user agent renamed to `*`, `agent`, or one common other name.

    Protego copies a group's rules for each of its agents, so thousands of agents would make
    millions of rules. It also takes an agent "s" for a prefix of "shoal".
    """
    return "\n".join(_readdressed(line, agent) for line in text.splitlines())


def _readdressed(line: str, agent: str) -> str:
    match = _agent_line(line)
    name = _product_of(match[1]) if match else ""
    if not name:
        return line
    return f"User-agent: {name if name in ('*', agent) else agent + '-other'}"


def _product_of(user_agent: str) -> str:
    """The product name in lower case: `shoal` for `Shoal/1.0 (web crawler)`."""
    match = _product(user_agent)
    return match[0].lower() if match else ""
