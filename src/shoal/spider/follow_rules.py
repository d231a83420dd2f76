"""Rules of a spider: which links of its pages to follow, and which handlers read their pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from shoal.core.task import DEFAULT_HANDLER, Task
from shoal.core.url_patterns import read_patterns
from shoal.errors import ConfigError
from shoal.spider.following import Handler, handler_name
from shoal.spider.page import Page
from shoal.spider.scrapy_words import unknown_word
from shoal.spider.selection import parse_query


@dataclass(frozen=True)
class Follow:
    """One rule: links to follow, and the handler for their pages.

        rules = [
            Follow("li.product a", handler="product"),
            Follow(allow="/catalog", deny="/*?sort="),
        ]

    A link is followed by the first rule that matches it. Raises ConfigError if a rule is invalid.
    """

    links: str = "a, area"
    """CSS of the links."""
    _: KW_ONLY
    handler: Handler = DEFAULT_HANDLER
    """The method that reads the pages."""
    follow: bool = False
    """Whether rules apply to the pages of that handler too. To those of `parse`, they always do."""
    allow: str | Iterable[str] = ()
    """As for `Page.follow_all`, like the next ones."""
    deny: str | Iterable[str] = ()
    within: str | None = None
    nofollow: bool = False
    files: bool = False
    """Whether to follow links to files that are not pages, judged by their extensions."""
    priority: int | None = None
    meta: Mapping[str, Any] | None = None

    def __new__(cls, *_: Any, **given: Any) -> Self:
        """Raises TypeError for unknown words, and says what to write instead of Scrapy's words."""
        if unknown := given.keys() - cls.__dataclass_fields__.keys():
            raise unknown_word(cls.__name__, sorted(unknown))
        return super().__new__(cls)

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "handler", handler_name(self.handler))
            for name in ("allow", "deny"):
                object.__setattr__(self, name, _as_list(getattr(self, name)))
                read_patterns(name, getattr(self, name))
            for query in (self.links, self.within):
                if query is not None:
                    parse_query(query)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"Follow: {error}") from None

    def tasks(self, page: Page) -> list[Task]:
        """The tasks to fetch the links of a page that match."""
        return page.follow_all(
            self.links,
            self.handler,
            priority=self.priority,
            meta=self.meta,
            allow=self.allow,
            deny=self.deny,
            within=self.within,
            nofollow=self.nofollow,
            files=self.files,
        )


def _as_list(patterns: Any) -> Any:
    """Something that can be read more than once: a generator is used up after the first page."""
    return tuple(patterns) if isinstance(patterns, Iterator) else patterns


class FollowRules:
    """All rules of a spider."""

    def __init__(self, rules: Sequence[Follow]) -> None:
        self._rules = rules
        followed = {str(rule.handler) for rule in rules if rule.follow}
        self.handlers = frozenset({DEFAULT_HANDLER, *followed}) if rules else frozenset()
        """The rules apply to the pages that these handlers read."""

    def tasks(self, page: Page) -> Iterator[Task]:
        """The tasks to fetch the links of an HTML page, each by the first rule that matches."""
        if page.task.job_type not in self.handlers or not page.is_html:
            return
        taken = set[str]()
        for rule in self._rules:
            found = [task for task in rule.tasks(page) if task.url not in taken]
            taken.update(task.url for task in found)
            yield from found


def read_rules(spider: str, rules: Any, has_handler: Callable[[str], bool]) -> FollowRules:
    """The rules of the spider with this name. Raises ConfigError."""
    if isinstance(rules, Follow) or not isinstance(rules, Iterable):
        raise ConfigError(f"{spider}.rules must be a list of Follow(...)")
    listed = tuple(rules)
    for rule in listed:
        if not isinstance(rule, Follow):
            raise ConfigError(f"{spider}.rules: write Follow(...), not {rule!r:.80}")
        if not has_handler(str(rule.handler)):
            raise ConfigError(f"{spider}.rules: no method {rule.handler!r} to read the pages")
    return FollowRules(listed)
