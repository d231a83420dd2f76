"""Makes a worker's spider, once the arguments of its crawl are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.config import Rules
from shoal.errors import ConfigError, UnknownCrawl
from shoal.fleet.target import NO_ARGUMENTS, create
from shoal.frontier.port import Overview
from shoal.frontier.values import CrawlState
from shoal.spider.arguments import arguments_of, shown, unlike
from shoal.spider.spider import Spider


class SpiderMaker:
    """Makes a worker's spider for the rules of its crawl, and a new one when its arguments change.

    Where the arguments are known from the start, the spider is made at once, so that mistakes show
    early.
    """

    def __init__(
        self,
        spider: type[Spider],
        plugins: Sequence[str] = (),
        told: Mapping[str, Any] = NO_ARGUMENTS,
    ) -> None:
        """`told`: the arguments that the crawl must have. If empty, any are accepted."""
        self.spider_class = spider
        self._plugins = plugins
        self._told = told
        self._args = told
        self._spider: Spider | None = None
        if told or not arguments_of(spider):
            self._spider = create(spider, plugins, told)

    @property
    def spider(self) -> Spider:
        """The spider, made with the arguments given here if there is none yet. Raises
        ConfigError."""
        self._spider = self._spider or create(self.spider_class, self._plugins, self._told)
        return self._spider

    def __call__(self, rules: Rules) -> Spider:
        """The spider with the arguments in these rules. Raises ConfigError if they differ from the
        arguments that the crawl must have, or if the spider cannot be made."""
        if self._told and unlike(self.spider_class, rules.args, self._told):
            raise ConfigError(
                f"the crawl is told {shown(rules.args)} by now, and not {shown(self._told)}"
            )
        if self._spider is None or rules.args != self._args:
            self._spider, self._args = (
                create(self.spider_class, self._plugins, rules.args),
                rules.args,
            )
        return self._spider


async def refuse_other_arguments(
    frontier: Overview, name: str, spider: type[Spider], rules: Rules
) -> None:
    """Check that an existing crawl may continue under these rules.

    Raises ConfigError if they give its spider other arguments: what it has found and what it would
    find do not belong together.
    """
    try:
        before = await frontier.stats(name)
    except UnknownCrawl:
        return
    if before.state is not CrawlState.NEW and unlike(spider, before.rules.args, rules.args):
        raise ConfigError(
            f"crawl '{name}' was told {shown(before.rules.args)}, and now {shown(rules.args)}:"
            " --name begins another crawl, --fresh starts this one over"
        )
