"""Admission: every task's address is checked, and its identity found."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.config import Rules
from shoal.core.bodies import MAX_BODY_BYTES
from shoal.core.files import file_task
from shoal.core.task import Task, encode
from shoal.core.urls import FINGERPRINT_BYTES, MAX_URL_LENGTH
from shoal.errors import BadUrl
from shoal.frontier.admission import Admission, NotAdmitted


def admission(
    allowed_hosts: tuple[str, ...] = (),
    max_depth: int | None = None,
    drop_params: tuple[str, ...] = (),
) -> Admission:
    return Admission(
        Rules(allowed_hosts=allowed_hosts, max_depth=max_depth, drop_params=drop_params)
    )


def test_an_admitted_task_has_a_site_and_a_fingerprint() -> None:
    task = Task(url="HTTPS://Shop.example:443/a/../b#c", site="evil.example")
    entry = admission().admit(task)
    assert entry.task is task
    assert task.site == "shop.example"
    assert task.url == "HTTPS://Shop.example:443/a/../b#c"  # what is sent is what the page said
    assert len(entry.fingerprint) == FINGERPRINT_BYTES
    assert entry.fingerprint == admission().fingerprint("https://shop.example/b")


def test_that_a_dead_task_is_to_be_tried_again_is_said_once() -> None:
    entry = admission().admit(Task(url="https://shop.example/", retry=True))
    assert entry.retry
    assert b"retry" not in encode(entry.task)
    assert not admission().admit(entry.task).retry


def test_dropped_parameters_are_those_of_the_rules() -> None:
    url = "https://shop.example/?session=1"
    assert admission(drop_params=("session",)).fingerprint(url) == admission().fingerprint(
        "https://shop.example/"
    )
    assert admission().fingerprint(url) != admission().fingerprint("https://shop.example/")


def test_method_and_body_are_part_of_the_identity() -> None:
    tasks = [
        Task(url="https://shop.example/"),
        Task(url="https://shop.example/", method="POST"),
        Task(url="https://shop.example/", method="POST", body="a"),
    ]
    assert len({admission().admit(task).fingerprint for task in tasks}) == 3


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(("text", "base64"), [("ü=1", "w7w9MQ=="), ("", "")])
def test_bytes_are_the_same_however_they_are_written(method: str, text: str, base64: str) -> None:
    url = "https://shop.example/"
    one = Task(url=url, method=method, body=text)
    other = Task(url=url, method=method, body=base64, body_is_base64=True)
    assert admission().admit(one).fingerprint == admission().admit(other).fingerprint
    spelled = Task(url=url, method="POST", body=f"{base64}YQ==")
    other = Task(url=url, method="POST", body="YQ==", body_is_base64=True)
    assert admission().admit(spelled).fingerprint != admission().admit(other).fingerprint


@pytest.mark.parametrize(
    ("body", "is_base64", "says"),
    [
        ("a", True, "the body is not base64"),
        ("\ud800", False, "can't encode character"),
        ("x" * (MAX_BODY_BYTES + 1), False, "a body of 1,048,577 bytes: a task has at most"),
    ],
)
def test_a_body_that_cannot_be_sent_is_refused(body: str, is_base64: bool, says: str) -> None:
    task = Task(url="https://shop.example/", method="POST", body=body, body_is_base64=is_base64)
    with pytest.raises(BadUrl, match=says):
        admission().admit(task)


@pytest.mark.parametrize(
    ("of_task", "of_crawl", "admitted", "pool"),
    [
        (None, None, None, None),
        ("shop", None, "shop", "@shop"),
        ("shop#alice", None, "shop#alice", "@shop#alice"),
        (None, "shop", "shop", "@shop"),
        (None, "shop#alice", "shop#alice", "@shop#alice"),
        ("forum", "shop", "forum", "@forum"),
        ("none", "shop", "none", None),
        ("none", None, None, None),
        (None, "none", None, None),
        ("shop", "none", "shop", "@shop"),
    ],
)
def test_session(
    of_task: str | None, of_crawl: str | None, admitted: str | None, pool: str | None
) -> None:
    door = Admission(Rules(sessions=("shop", "forum"), session=of_crawl))
    task = door.admit(Task(url="https://shop.example/", session=of_task)).task
    assert (task.session, task.pool, task.proxy_pool) == (admitted, pool, None)


@pytest.mark.parametrize(
    ("of_task", "of_crawl"),
    [("bank", None), ("bank#alice", "shop"), (None, "bank"), ("Shop", None), ("#alice", None)],
)
def test_a_session_that_the_crawl_does_not_know(of_task: str | None, of_crawl: str | None) -> None:
    door = Admission(Rules(sessions=("shop",), session=of_crawl))
    with pytest.raises(BadUrl, match=r"^no such session: [a-zA-Z]*: 'https://shop.example/'$"):
        door.admit(Task(url="https://shop.example/", session=of_task))


@pytest.mark.parametrize("session", ["shop#", "shop#a b", "shop##", "shop#alice#bob"])
def test_an_account_that_there_cannot_be(session: str) -> None:
    """Nothing would ever look for what waits for it."""
    door = Admission(Rules(sessions=("shop",)))
    with pytest.raises(BadUrl, match=r"^the name of an account has .*: 'https://shop.example/'$"):
        door.admit(Task(url="https://shop.example/", session=session))


@pytest.mark.parametrize("pool", ["dc", "direct"])
def test_a_session_has_the_exits_of_its_group(pool: str) -> None:
    door = Admission(Rules(sessions=("shop",), pools=("dc",)))
    with pytest.raises(BadUrl, match=r"^the exits of a session are those of its group: "):
        door.admit(Task(url="https://shop.example/", session="shop", proxy_pool=pool))


def test_where_a_crawl_has_a_pool_for_all_sessions_have_none() -> None:
    door = Admission(Rules(sessions=("shop",), pools=("dc",), proxy_pool="dc"))
    assert door.admit(Task(url="https://shop.example/", session="shop")).task.pool == "@shop"
    assert door.admit(Task(url="https://shop.example/", session="none")).task.pool == "dc"
    assert door.admit(Task(url="https://shop.example/")).task.pool == "dc"


def test_a_session_is_part_of_the_identity() -> None:
    """Two accounts see two pages."""
    door = Admission(Rules(sessions=("shop", "forum")))
    url = "https://shop.example/"
    sessions = (None, "shop", "shop#alice", "forum")
    found = [door.admit(Task(url=url, session=each)).fingerprint for each in sessions]
    assert len(set(found)) == 4
    assert found[0] == admission().fingerprint(url) == door.fingerprint(url)
    assert door.admit(Task(url=url, session="none")).fingerprint == found[0]
    sent = Task(url=url, session="shop", method="POST", body="a")
    assert door.admit(sent).fingerprint not in found


def test_the_default_session_is_part_of_it_too() -> None:
    url = "https://shop.example/"
    named = Admission(Rules(sessions=("shop",))).admit(Task(url=url, session="shop"))
    door = Admission(Rules(sessions=("shop",), session="shop"))
    assert door.admit(Task(url=url)).fingerprint == named.fingerprint
    assert door.fingerprint(url) == named.fingerprint, "who asks for the page finds it"
    without = door.admit(Task(url=url, session="none")).fingerprint
    assert without == admission().fingerprint(url)


@pytest.mark.parametrize(
    ("of_task", "of_crawl", "admitted"),
    [
        (None, None, None),
        ("dc", None, "dc"),
        (None, "dc", "dc"),
        ("res", "dc", "res"),
        ("direct", "dc", "direct"),
        ("direct", None, None),
        (None, "direct", None),
        ("dc", "direct", "dc"),
    ],
)
def test_pool(of_task: str | None, of_crawl: str | None, admitted: str | None) -> None:
    door = Admission(Rules(pools=("dc", "res"), proxy_pool=of_crawl))
    task = Task(url="https://shop.example/", proxy_pool=of_task)
    assert door.admit(task).task.proxy_pool == admitted


@pytest.mark.parametrize(("of_task", "of_crawl"), [("tor", None), ("tor", "dc"), (None, "tor")])
def test_a_pool_that_the_crawl_does_not_know(of_task: str | None, of_crawl: str | None) -> None:
    door = Admission(Rules(pools=("dc",), proxy_pool=of_crawl))
    with pytest.raises(BadUrl, match=r"^no such pool: tor: 'https://shop.example/'$"):
        door.admit(Task(url="https://shop.example/", proxy_pool=of_task))


def test_a_path_that_repeats_itself_is_for_seeds_only() -> None:
    url = "https://shop.example" + "/a/b" * 9
    with pytest.raises(NotAdmitted, match="its path repeats /a/b: https"):
        admission().admit(Task(url=url), found_on="shop.example")
    admission().admit(Task(url=url))


@pytest.mark.parametrize(
    ("limits", "shape"),
    [({}, None), ({"max_pages_per_host": 1}, ""), ({"max_pages_per_shape": 1}, "/day/N?view")],
)
def test_links_have_a_shape_where_a_limit_counts_it(
    limits: dict[str, Any], shape: str | None
) -> None:
    door = Admission(Rules(**limits))
    url = "https://shop.example/day/7?view=%61&utm_source=x"
    assert door.admit(Task(url=url), found_on="shop.example").shape == shape
    assert door.admit(Task(url=url)).shape is None, "a seed"
    redirected = Task(url=url, redirects=["https://shop.example/today"])
    assert door.admit(redirected, found_on="shop.example").shape is None, "a page let in before"
    assert door.admit(file_task(url, None), found_on="shop.example").shape is None, "a file"


def test_depth() -> None:
    door = admission(max_depth=2)
    door.admit(Task(url="https://shop.example/", depth=2))
    with pytest.raises(NotAdmitted, match="deeper than 2"):
        door.admit(Task(url="https://shop.example/", depth=3))
    with pytest.raises(NotAdmitted):
        admission(max_depth=0).admit(Task(url="https://shop.example/", depth=1))


@pytest.mark.parametrize(
    "allowed", ["shop.example", "SHOP.example", "bücher.example", "xn--bcher-kva.example"]
)
def test_hosts_are_allowed_however_they_are_written(allowed: str) -> None:
    door = admission(allowed_hosts=(allowed,))
    url = "https://www.shop.example/" if "shop" in allowed.lower() else "https://bücher.example/"
    door.admit(Task(url=url))
    with pytest.raises(NotAdmitted, match="host not allowed"):
        door.admit(Task(url="https://other.example/"))


def test_a_repeatable_task_is_known_by_its_id() -> None:
    door = admission()
    url = "https://shop.example/"
    first = door.admit(Task(url=url, dont_filter=True))
    second = door.admit(Task(url=url, dont_filter=True))
    assert first.fingerprint != second.fingerprint != door.fingerprint(url)
    assert door.admit(first.task).fingerprint == first.fingerprint  # a retry stays what it was


def test_the_rules_do_not_hide_a_task_from_those_who_ask() -> None:
    door = admission(allowed_hosts=("shop.example",), max_depth=0)
    entry = door.admitted_as(Task(url="https://other.example/", depth=5))
    assert entry.fingerprint == door.fingerprint("https://other.example/")


@pytest.mark.parametrize(
    "url", ["", "shop.example", "ftp://shop.example/", "http://", "http://[", "\ud800", "\0"]
)
def test_a_bad_url_is_not_admitted(url: str) -> None:
    with pytest.raises(BadUrl):
        admission().admit(Task(url=url))


def test_an_endless_url_is_not_admitted() -> None:
    url = "https://shop.example/" + "a" * MAX_URL_LENGTH
    with pytest.raises(BadUrl, match="longer than") as raised:
        admission().admit(Task(url=url))
    assert len(str(raised.value)) < 200


@given(url=st.text(st.characters(exclude_categories=())), depth=st.integers())
def test_any_task_is_admitted_or_a_bad_url(url: str, depth: int) -> None:
    try:
        entry = admission(max_depth=3).admit(Task(url=url, depth=depth))
    except BadUrl:
        return
    assert entry.task.site


@pytest.mark.parametrize("name", ["priority", "depth", "retry_count", "max_retries"])
@pytest.mark.parametrize("number", [1.5, float("nan"), float("inf"), 2**31, 10**30, "1", True])
def test_a_number_that_no_other_worker_could_read(name: str, number: Any) -> None:
    with pytest.raises(BadUrl, match=f"^{name} must be a whole number"):
        admission().admit(Task(url="http://a.example/", **{name: number}))


@pytest.mark.parametrize("name", ["depth", "retry_count", "max_retries"])
def test_a_number_below_nothing(name: str) -> None:
    fields: dict[str, Any] = {name: -1}
    with pytest.raises(BadUrl, match=f"^{name} must be a whole number from 0 to"):
        admission().admit(Task(url="http://a.example/", **fields))


VICTIM = "victim.example"


@pytest.mark.parametrize("port", [81, 8080, 65535])
@pytest.mark.parametrize("found_on", ["evil.example", VICTIM, f"{VICTIM}:82"])
@pytest.mark.parametrize("allowed_hosts", [(), (VICTIM, "evil.example")])
def test_a_page_cannot_send_us_to_every_port_of_a_machine(
    port: int, found_on: str, allowed_hosts: tuple[str, ...]
) -> None:
    door = admission(allowed_hosts)
    with pytest.raises(NotAdmitted, match="another port, which allowed_hosts does not name"):
        door.admit(Task(url=f"http://{VICTIM}:{port}/"), found_on)


@pytest.mark.parametrize(
    ("url", "found_on"),
    [
        (f"http://{VICTIM}:81/", None),
        (f"http://{VICTIM}:81/", f"{VICTIM}:81"),
        (f"http://{VICTIM}/", f"{VICTIM}:81"),
        (f"https://{VICTIM}:443/", VICTIM),
        ("http://localhost:81/", "localhost"),
        ("http://shop:81/", VICTIM),
        ("http://127.0.0.1:81/", "127.0.0.1:82"),
        ("http://[::1]:81/", "[::1]"),
        ("http://[2606:4700::1]/", VICTIM),
    ],
    ids=lambda value: value or "a seed",
)
def test_where_a_page_may_lead(url: str, found_on: str | None) -> None:
    admission().admit(Task(url=url), found_on)


@pytest.mark.parametrize("host", ["93.184.216.34", "[2606:4700::1]"])
def test_an_address_is_a_machine_like_a_name(host: str) -> None:
    with pytest.raises(NotAdmitted):
        admission().admit(Task(url=f"http://{host}:81/"), host)


def test_a_port_that_is_allowed_by_name() -> None:
    door = admission((VICTIM, f"{VICTIM}:8080"))
    door.admit(Task(url=f"http://{VICTIM}:8080/"), VICTIM)
    door.admit(Task(url=f"http://www.{VICTIM}:8080/"), VICTIM)
    with pytest.raises(NotAdmitted):
        door.admit(Task(url=f"http://{VICTIM}:8081/"), VICTIM)


def test_the_dot_behind_a_name_makes_no_other_host() -> None:
    plain, dotted = (Task(url=f"http://{name}:81/a") for name in (VICTIM, f"{VICTIM}."))
    assert admission().admit(plain).fingerprint == admission().admit(dotted).fingerprint
    assert plain.site == dotted.site == f"{VICTIM}:81"
    admission((VICTIM,)).admit(Task(url=f"http://{VICTIM}./"))
    assert admission((f"{VICTIM}.",)).admit(Task(url=f"http://{VICTIM}/")).task.site == VICTIM


def test_in_crawls_of_scrapys_the_ports_of_a_name_are_one_host() -> None:
    door = Admission(Rules(fingerprints="scrapy"))
    sites = [
        door.admit(Task(url=f"http://{host}/")).task.site
        for host in (VICTIM, f"{VICTIM}:81", f"{VICTIM}.:82", "127.0.0.1:81", "localhost:81")
    ]
    assert sites == [VICTIM, VICTIM, VICTIM, "127.0.0.1:81", "localhost:81"]
