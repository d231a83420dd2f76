"""What would become of the tasks of a page."""

from __future__ import annotations

from shoal.config import Rules
from shoal.core.files import file_task
from shoal.core.task import Task
from shoal.errors import BadUrl
from shoal.fetch.robots import RobotsRules
from shoal.frontier.values import Lease
from shoal.spider.page import Page
from shoal.spider.spider import Spider
from shoal.workbench.links import Fates, RecordingAdmission
from shoal.worker.visits.canonical import ALIAS

URL = "https://shop.example/list"


class Shop(Spider):
    def lamp(self, page: Page) -> None: ...


def fates(*tasks: Task, rules: Rules | None = None, robots: str | None = None) -> list[str]:
    admission = RecordingAdmission(rules or Rules())
    own = admission.admit(Task(url=URL))
    admission.decisions.clear()
    for task in tasks:
        try:
            admission.admit(task, "shop.example")
        except BadUrl:
            continue
    lease = Lease(own.fingerprint, "token", own.task)
    known = RobotsRules(robots, "shoal") if robots is not None else None
    return [link.fate for link in Fates(Shop(), lease, known).links(admission.decisions)]


def test_the_same_address_in_another_spelling() -> None:
    found = fates(
        Task(url=f"{URL}?utm_source=x"),
        Task(url="https://shop.example/a?b=1&c=2"),
        Task(url="https://SHOP.example/a?c=2&b=1#top"),
    )
    assert found == ["this page itself", "new", "twice on this page"]


def test_a_file_wants_no_handler_and_is_no_page() -> None:
    assert fates(file_task(URL, None), file_task(URL, None)) == ["new", "twice on this page"]


def test_what_the_rules_do_not_want_and_why() -> None:
    rules = Rules(allowed_hosts=("shop.example",), max_depth=2)
    found = fates(
        Task(url="https://other.example/"),
        Task(url="https://shop.example/deep", depth=3),
        Task(url="https://shop.example/" + "x" * 10_000),
        rules=rules,
    )
    assert found[:2] == ["host not allowed", "deeper than 2"]
    assert found[2].startswith("URL longer than")


def test_what_the_spider_lacks() -> None:
    found = fates(
        Task(url="https://shop.example/1", job_type="lmap"),
        Task(url="https://shop.example/2", job_type="lamp", on_failure="gone"),
        Task(url="https://shop.example/3", job_type="lamp", on_failure="on_failure"),
    )
    assert found == [
        "no handler 'lmap' in Shop",
        "no method 'gone' for on_failure in Shop",
        "new",
    ]


def test_robots_txt_is_that_of_the_pages_own_host() -> None:
    rules = "User-agent: *\nDisallow: /cart"
    urls = ("https://shop.example/cart", "https://other.example/cart")
    found = fates(*(Task(url=url) for url in urls), robots=rules)
    assert found == ["robots.txt forbids it", "new"]


def test_another_address_of_the_page_is_no_link() -> None:
    assert fates(Task(url="https://shop.example/x", job_type=ALIAS)) == []
