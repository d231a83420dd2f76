"""Admission: every task's address is checked, and its identity found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.admission import MAX_URL_LENGTH, Admission, NotAdmitted
from shoal.config import Rules
from shoal.errors import BadUrl
from shoal.task import Task, decode
from shoal.urls import FINGERPRINT_BYTES


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


@pytest.mark.parametrize("field", ["proxy_pool", "session"])
def test_what_no_worker_heeds_yet_is_refused(field: str) -> None:
    """It is a field on the wire, but fetched without it the task would not be what was meant."""
    task = decode(b'{"url": "https://shop.example/", "%s": "mine"}' % field.encode())
    with pytest.raises(BadUrl, match=f"^{field} is not supported yet: https://shop.example/$"):
        admission().admit(task)


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
