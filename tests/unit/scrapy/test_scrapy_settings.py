"""What the settings of a Scrapy project mean to Shoal."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from typing import Any

import pytest
from scrapy import Spider
from scrapy.settings import Settings as ProjectSettings
from scrapy.utils.test import get_crawler

from shoal.config import DEFAULT_STORE, Rules, Settings
from shoal.core.policy import parse_rate
from shoal.errors import ConfigError
from shoal.scrapy.feeds.settings import feed_settings
from shoal.scrapy.pipelines import RedisPipeline
from shoal.scrapy.reading import mapping, switch
from shoal.scrapy.spiders import RedisSpider
from shoal.scrapy.worker.settings import (
    MEMBERSHIP,
    Membership,
    keeps_results,
    only_looks,
    rate_for,
    refuse_meaningless,
    settings_of,
)


class Shop(Spider):
    name = "shop"


class ResultsPipeline:
    """A project's own, which only has the name of ours."""


class SlowShop(Spider):
    name = "slow"
    download_delay = 2


def settings(values: dict[str, Any], spider: type[Spider] = Shop) -> Settings:
    return settings_of(ProjectSettings(values), spider)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No shoal.toml, no SHOAL_ variables."""
    monkeypatch.chdir(tmp_path)


def test_scrapys_defaults() -> None:
    found = settings({})
    assert (found.name, found.frontier) == ("shop", DEFAULT_STORE)
    assert (found.rules.rate, found.rules.concurrency_per_host) == ("none", 8)
    assert found.concurrency == 16
    assert not found.rules.robots
    assert found.rules.fingerprints == "scrapy"


@pytest.mark.parametrize(
    ("values", "rate"),
    [
        ({"DOWNLOAD_DELAY": 0.5}, "2/s"),
        ({"DOWNLOAD_DELAY": 3}, "20/m"),
        ({"AUTOTHROTTLE_ENABLED": True}, "auto"),
        ({"AUTOTHROTTLE_ENABLED": True, "DOWNLOAD_DELAY": 1}, "1/s"),
        ({"DOWNLOAD_DELAY": 1, "SHOAL_RATE": "7/m"}, "7/m"),
    ],
)
def test_politeness(values: dict[str, Any], rate: str) -> None:
    assert settings(values).rules.rate == rate


def test_a_delay_that_an_old_spider_names_itself() -> None:
    assert settings({}, SlowShop).rules.rate == "30/m"


@pytest.mark.parametrize("delay_s", [0.001, 0.1, 0.25, 0.3, 0.7, 1, 1.5, 2.5, 7, 61, 4000, 90_000])
def test_a_delay_becomes_a_rate_of_the_same_pause(delay_s: float) -> None:
    rate = parse_rate(rate_for(delay_s))
    assert rate.period_s / rate.count == pytest.approx(delay_s, rel=1e-4)


@pytest.mark.parametrize(
    ("values", "frontier"),
    [
        ({"REDIS_URL": "redis://queue-host:6380/2"}, "redis://queue-host:6380/2"),
        (
            {"REDIS_URL": "redis://queue-host", "SHOAL_FRONTIER": "sqlite:///other.db"},
            "sqlite:///other.db",
        ),
    ],
)
def test_where_the_queue_is(values: dict[str, Any], frontier: str) -> None:
    assert settings(values).frontier == frontier


def test_every_setting_of_shoal_has_a_name_in_scrapy() -> None:
    found = settings({"SHOAL_CRAWL": "winter", "SHOAL_LEASE_S": "12", "SHOAL_SEEN": "bloom"})
    assert (found.name, found.rules.lease_s, found.rules.seen) == ("winter", 12.0, "bloom")


def test_a_wrong_value_is_said_in_one_line() -> None:
    with pytest.raises(ConfigError, match=r"^SHOAL_RATE = 'fast': not a rate: 'fast'"):
        settings({"SHOAL_RATE": "fast"})


class Fed(RedisSpider):
    name = "fed"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"CONCURRENT_REQUESTS": "x"}, "CONCURRENT_REQUESTS = 'x': not a whole number"),
        ({"RETRY_TIMES": []}, "RETRY_TIMES = []: not a whole number"),
        ({"RETRY_TIMES": -1}, "RETRY_TIMES = -1: not less than 0"),
        (
            {"CONCURRENT_REQUESTS_PER_DOMAIN": "1.5"},
            "CONCURRENT_REQUESTS_PER_DOMAIN = '1.5': not a whole number",
        ),
        ({"DOWNLOAD_DELAY": "soon"}, "DOWNLOAD_DELAY = 'soon': not a number"),
        ({"AUTOTHROTTLE_ENABLED": "maybe"}, "AUTOTHROTTLE_ENABLED = 'maybe': not True or False"),
        ({"SHOAL_LEASE_S": "long"}, "SHOAL_LEASE_S = 'long': must be a number, more than 0"),
        ({"SHOAL_SEEN": "blurred"}, "SHOAL_SEEN = 'blurred': "),
        ({"SHOAL_MAX_RETRIES": -1}, "SHOAL_MAX_RETRIES = -1: "),
        ({"REDIS_PARAMS": "password=hunter2"}, "REDIS_PARAMS: not a dict"),
        ({"DOWNLOAD_DELAY": 1e15}, "DOWNLOAD_DELAY = 1000000000000000.0: "),
    ],
)
def test_a_wrong_setting_is_named_with_its_value(values: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(values)
    assert str(caught.value).startswith(says)


@pytest.mark.parametrize(
    ("of_spider", "of_project", "says"),
    [
        ({"redis_batch_size": "x"}, {}, "redis_batch_size = 'x': not a whole number"),
        ({"redis_batch_size": -1}, {}, "redis_batch_size = -1: not less than 0"),
        (
            {},
            {"REDIS_START_URLS_BATCH_SIZE": "x"},
            "REDIS_START_URLS_BATCH_SIZE = 'x': not a whole number",
        ),
        ({"max_idle_time": "x"}, {}, "max_idle_time = 'x': not a whole number"),
        (
            {},
            {"MAX_IDLE_TIME_BEFORE_CLOSE": "x"},
            "MAX_IDLE_TIME_BEFORE_CLOSE = 'x': not a whole number",
        ),
        ({"redis_encoding": "utf-99"}, {}, "redis_encoding = 'utf-99': no encoding"),
        ({"redis_key": 5}, {}, "redis_key = 5: not a key, and no list of keys"),
        ({"redis_key": "%(nam)s"}, {}, "redis_key = '%(nam)s': cannot be filled in: 'nam'"),
        ({"redis_key": [" "]}, {}, "the spider 'fed' has an empty redis_key"),
    ],
)
def test_a_wrong_setting_of_a_feed_is_named(
    of_spider: dict[str, Any],
    of_project: dict[str, Any],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    at_the_end: list[Callable[[], None]] = []
    monkeypatch.setattr(atexit, "register", at_the_end.append)
    spider: Any = type("Wrong", (Fed,), of_spider)
    with pytest.raises(ConfigError) as caught:
        feed_settings(spider, ProjectSettings(of_project))
    assert str(caught.value) == says
    with pytest.raises(ConfigError):
        spider.from_crawler(get_crawler(spider, of_project))
    (say_it,) = at_the_end
    capsys.readouterr()
    say_it()
    assert capsys.readouterr().err == f"shoal: {says}\n"


def test_what_a_feed_says_by_default() -> None:
    told = feed_settings(Fed, ProjectSettings({"CONCURRENT_REQUESTS": 7}))
    assert told == (["fed:start_urls"], 7, "utf-8", 0)


@pytest.mark.parametrize("name", ["SCHEDULER_PERSIST", "SHOAL_ITEM_KEYS"])
def test_other_kinds_of_settings_are_named_too(name: str) -> None:
    read = switch if name == "SCHEDULER_PERSIST" else mapping
    with pytest.raises(ConfigError, match=f"^{name}"):
        read(ProjectSettings({name: "maybe"}), name)


def test_a_serializer_that_is_not_there_is_named() -> None:
    wrong = ProjectSettings({"REDIS_ITEMS_SERIALIZER": "nosuch.dumps"})
    with pytest.raises(ConfigError, match=r"^REDIS_ITEMS_SERIALIZER = 'nosuch\.dumps': "):
        RedisPipeline.from_settings(wrong)


def test_the_environment_is_stronger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_RATE", "9/m")
    monkeypatch.setenv("SHOAL_CRAWL", "winter")
    found = settings({"SHOAL_RATE": "1/s", "SHOAL_CRAWL": "summer"})
    assert (found.rules.rate, found.name) == ("9/m", "winter")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"SHOAL_ARCHIVE": "file:///pages"}, "archive has no meaning .*: its pages"),
        ({"SHOAL_MAX_DEPTH": 3}, "max_depth .*: use DEPTH_LIMIT"),
        ({"SHOAL_ROBOTS": True}, "robots .*: use ROBOTSTXT_OBEY"),
        ({"SHOAL_ALLOWED_HOSTS": "shop.example"}, "allowed_hosts .*: use allowed_domains"),
        ({"SHOAL_PREVIOUS": "monday"}, "previous .*: see HTTPCACHE_POLICY"),
    ],
)
def test_what_scrapy_has_its_own_settings_for_is_refused(values: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        refuse_meaningless(settings(values))


def test_the_settings_of_scrapy_itself_are_not_refused() -> None:
    refuse_meaningless(settings({"ROBOTSTXT_OBEY": True, "DEPTH_LIMIT": 3, "SHOAL_MAX_PAGES": 9}))


def test_a_project_with_fingerprints_of_its_own() -> None:
    assert settings({"REQUEST_FINGERPRINTER_CLASS": "shop.Own"}).rules.fingerprints == "project"


def test_a_member_of_a_fleet_is_told_its_settings() -> None:
    given = Settings(name="told", rules=Rules(rate="3/s"))
    project = ProjectSettings({"DOWNLOAD_DELAY": 5, MEMBERSHIP: Membership(given, "shop")})
    assert settings_of(project, Shop) is given


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ({}, False),
        ({"ITEM_PIPELINES": {"shoal.scrapy.pipelines.RedisPipeline": 300}}, False),
        ({"ITEM_PIPELINES": {f"{__name__}.ResultsPipeline": 300}}, False),
        ({"ITEM_PIPELINES": {"shoal.scrapy.ResultsPipeline": 300}}, True),
        ({"ITEM_PIPELINES": {"shoal.scrapy.ResultsPipeline": None}}, False),
        ({"SHOAL_RESULTS": "sqlite:///shoal.db"}, True),
        ({MEMBERSHIP: Membership(Settings(), "shop")}, True),
    ],
)
def test_whether_results_are_kept(values: dict[str, Any], kept: bool) -> None:
    assert keeps_results(ProjectSettings(values)) is kept


@pytest.mark.parametrize(
    ("argv", "looks"),
    [
        (["python", "/usr/bin/scrapy", "shell", "https://shop.example"], True),
        (["python", "-m", "scrapy", "parse", "https://shop.example"], True),
        (["python", "/usr/bin/scrapy", "crawl", "shell"], False),
        (["python", "/usr/bin/scrapy"], False),
        (["python", "crawl.py", "fetch"], False),
    ],
)
def test_commands_that_only_look_at_a_page(argv: list[str], looks: bool) -> None:
    assert only_looks(argv) is looks
