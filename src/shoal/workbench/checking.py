"""Checks spiders and shoal.toml before a crawl."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from shoal import config
from shoal.config import Settings
from shoal.errors import ConfigError
from shoal.fleet import target
from shoal.fleet.spider_files import Fault, FoundSpider, FoundSpiders, spiders_in
from shoal.spider.own_settings import settings_of, table_of
from shoal.spider.spider import Spider
from shoal.workbench.check_file import check_file, check_variables
from shoal.workbench.check_servers import check_servers
from shoal.workbench.check_spider import check_spider
from shoal.workbench.findings import Finding
from shoal.workbench.sources import Source, file_of

_LINE = re.compile(r":(\d+): (.*)", re.DOTALL)


class Checked(msgspec.Struct):
    """What was checked, and the mistakes in it."""

    spiders: list[str] = []
    """Their targets."""
    findings: list[Finding] = []


async def check(targets: Sequence[str], *, offline: bool) -> Checked:
    """Check these spiders, or all of this folder; shoal.toml; and the servers that they name.
    Raises ConfigError if a target does not exist."""
    found = spiders_at(targets)
    findings = [_finding_of(fault) for fault in found.faults]
    findings += check_file(_tables(targets, found)) + check_variables(os.environ)
    usable: list[tuple[Settings, str]] = []
    for each in found.spiders:
        settings = _settings_of(each.spider)
        findings += check_spider(each.spider, settings)
        if settings is not None:
            usable.append((settings, settings.name or each.spider.name))
    findings += _same_names([each.spider for each in found.spiders])
    if not offline:
        alone = _settings_of(Spider)
        findings += await check_servers(usable or ([(alone, "")] if alone is not None else []))
    return Checked(found.targets, sorted(set(findings)))


def spiders_at(targets: Sequence[str]) -> FoundSpiders:
    """The spiders of these targets, files, folders and modules. Without targets, those of this
    folder. Raises ConfigError."""
    if not targets:
        return spiders_in(".")
    found = FoundSpiders()
    for place in targets:
        if target.is_scrapy([place]):
            raise ConfigError(f"{place}: only Shoal's own spiders, not those of Scrapy")
        if place.rpartition(":")[2].isidentifier() and ":" in place:
            found.spiders.append(FoundSpider(place, target.load([place])))
            continue
        try:
            there = spiders_in(place)
        except ConfigError as error:
            if not Path(place).exists():
                raise
            there = FoundSpiders(faults=[Fault(place, str(error))])
        if not there.spiders and not there.faults:
            there.faults.append(Fault(place, "has no Spider in it"))
        found.spiders += there.spiders
        found.faults += there.faults
    return found


def _tables(targets: Sequence[str], found: FoundSpiders) -> set[str] | None:
    """The tables that shoal.toml may have for spiders. None: not all spiders were loaded."""
    if targets or found.faults:
        return None
    return {table_of(each.spider) for each in found.spiders if isinstance(each.spider.name, str)}


def _finding_of(fault: Fault) -> Finding:
    """The finding for a fault, whose message may contain the full path and the line."""
    message = fault.message.removeprefix(str(Path(fault.place).resolve()))
    line = _LINE.match(message.removeprefix(fault.place))
    if line is None:
        return Finding(fault.place, 0, fault.message)
    return Finding(fault.place, int(line[1]), line[2])


def _settings_of(spider: type[Spider]) -> Settings | None:
    """The settings of a crawl of this spider. None: they are wrong, which is reported elsewhere."""
    try:
        return config.load(spider=settings_of(spider), environ=os.environ)
    except ConfigError:
        return None


def _same_names(spiders: Sequence[type[Spider]]) -> Iterator[Finding]:
    """The spiders with the name of another one: they would be the same crawl."""
    named: dict[str, list[type[Spider]]] = defaultdict(list)
    for spider in dict.fromkeys(spiders):
        if isinstance(spider.name, str):
            named[spider.name].append(spider)
    for name, same in named.items():
        for other in same[1:]:
            source = Source(other)
            first = f"{same[0].__name__} in {file_of(same[0])}"
            line = source.line_of("name") or source.line
            yield Finding(source.file, line, f"the name {name!r} is also that of {first}")
