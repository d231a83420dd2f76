"""URL identity: spellings of one address meet, different addresses do not."""

from __future__ import annotations

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.core.urls import (
    FINGERPRINT_BYTES,
    TRACKING_PARAMETERS,
    Normaliser,
    allowed_host,
    digest,
    fingerprint,
    host_matches,
    join,
    parse,
)
from shoal.errors import BadUrl

UNRESERVED = string.ascii_letters + string.digits + "-._~"

normaliser = Normaliser()

anything = st.text(st.characters(exclude_categories=()))
"""Lone surrogates too, which `st.text()` leaves out."""

_labels = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=8)
_hosts = st.builds("{}.{}.example".format, _labels, _labels)
_words = st.text(UNRESERVED, min_size=1, max_size=6).filter(lambda word: set(word) != {"."})
_escaped = (
    st.integers(0, 255).filter(lambda byte: chr(byte) not in UNRESERVED).map("%{:02X}".format)
)
_segments = st.lists(_words | _escaped, min_size=1, max_size=3).map("".join)
_paths = st.lists(_segments, max_size=4).map(lambda segments: "/" + "/".join(segments))
_names = _words.filter(lambda name: not name.startswith(("utm_", "_g")))
_pairs = st.lists(st.builds("{}={}".format, _names, _segments), max_size=4)


def normal(url: str) -> str:
    return normaliser.identify(url).normal


def address(scheme: str, host: str, path: str, pairs: list[str]) -> str:
    return f"{scheme}://{host}{path}" + ("?" + "&".join(pairs) if pairs else "")


def recased(text: str, upper: list[bool]) -> str:
    flags = [*upper, *[False] * len(text)]
    return "".join(char.upper() if flag else char for char, flag in zip(text, flags, strict=False))


def needlessly_escaped(text: str) -> str:
    """Every unreserved character as an escape; escapes in lower case."""
    spelled, position = "", 0
    while position < len(text):
        if text[position] == "%":
            spelled += text[position : position + 3].lower()
            position += 3
        else:
            char = text[position]
            spelled += f"%{ord(char):02x}" if char in UNRESERVED else char
            position += 1
    return spelled


@given(
    url=st.text() | st.builds("http://h.example/{}?{}#{}".format, st.text(), st.text(), st.text())
)
@example(url="http://h/%%34%31?%2%35=%zz")
@example(url="http://h/%252e%252e/?a=%25")
@example(url="http://user:p%41ss@h/;x=%3B")
def test_normalising_twice_changes_nothing(url: str) -> None:
    try:
        identity = normaliser.identify(url)
    except BadUrl:
        return
    assert normaliser.identify(identity.normal) == identity


@given(
    scheme=st.sampled_from(["http", "https"]),
    host=_hosts,
    path=_paths,
    pairs=_pairs,
    upper=st.lists(st.booleans(), max_size=30),
    tracking=st.lists(st.sampled_from(["utm_source", "utm_x", "gclid=1", "fbclid="]), max_size=2),
    fragment=st.text(max_size=5),
    data=st.data(),
)
def test_spellings_of_one_address_meet(
    scheme: str,
    host: str,
    path: str,
    pairs: list[str],
    upper: list[bool],
    tracking: list[str],
    fragment: str,
    data: st.DataObject,
) -> None:
    port = {"http": ":80", "https": ":443"}[scheme]
    dotted = path.replace("/", "/./") if path != "/" else "/x/.."
    shuffled = data.draw(st.permutations([needlessly_escaped(pair) for pair in pairs] + tracking))
    spelling = address(
        recased(scheme, upper),
        recased(host, upper) + data.draw(st.sampled_from(["", port])),
        data.draw(st.sampled_from([path, dotted, "/gone/.." + path, needlessly_escaped(path)])),
        shuffled,
    )
    plain = address(scheme, host, path, pairs)
    assert normal(f" {spelling}#{fragment}") == normal(plain)
    assert normaliser.identify(spelling).site == host


_parts = st.tuples(st.sampled_from(["http", "https"]), _hosts, _paths, _pairs.map(sorted))


@given(one=_parts, other=_parts)
@example(one=("http", "h.example", "/a", []), other=("http", "h.example", "/A", []))
@example(one=("http", "h.example", "/a", []), other=("http", "h.example", "/a/", []))
@example(one=("http", "h.example", "/a%2Fb", []), other=("http", "h.example", "/a/b", []))
@example(one=("http", "h.example", "/", ["a=1"]), other=("http", "h.example", "/", ["a=1", "a=1"]))
@example(one=("http", "h.example", "/", ["a=%26b"]), other=("http", "h.example", "/", ["a=", "b"]))
@example(one=("http", "h.example", "/", ["a=%2B"]), other=("http", "h.example", "/", ["a=+"]))
@example(one=("http", "h.example:8080", "/", []), other=("http", "h.example", "/", []))
def test_different_addresses_differ(
    one: tuple[str, str, str, list[str]], other: tuple[str, str, str, list[str]]
) -> None:
    assert (normal(address(*one)) == normal(address(*other))) is (one == other)


@pytest.mark.parametrize(
    ("url", "expected", "site"),
    [
        (
            "HTTP://Shop.Example:80/a/../b/./c?z=1&a=2#top",
            "http://shop.example/b/c?a=2&z=1",
            "shop.example",
        ),
        ("https://shop.example", "https://shop.example/", "shop.example"),
        ("https://shop.example:8443/?", "https://shop.example:8443/", "shop.example:8443"),
        ("https://shop.example/?utm_source=x&gclid=y", "https://shop.example/", "shop.example"),
        ("https://shop.example/?%75tm_source=x&&b", "https://shop.example/?b", "shop.example"),
        (
            "https://bücher.example/ü",
            "https://xn--bcher-kva.example/%C3%BC",
            "xn--bcher-kva.example",
        ),
        ("http://0x7f.1/", "http://127.0.0.1/", "127.0.0.1"),
        ("http://[::0001]:81/", "http://[::1]:81/", "[::1]:81"),
        ("http://h\\a\tb", "http://h/ab", "h"),
    ],
)
def test_normal_forms(url: str, expected: str, site: str) -> None:
    identity = normaliser.identify(url)
    assert (identity.normal, identity.site) == (expected, site)


def test_the_dropped_parameters_can_be_chosen() -> None:
    url = "https://shop.example/?session=1&ref=2&referrer=3&utm_source=4"
    assert (
        Normaliser(["session", "ref*"]).identify(url).normal == "https://shop.example/?utm_source=4"
    )
    assert Normaliser([]).identify(url).normal.count("=") == 4


@pytest.mark.parametrize("name", TRACKING_PARAMETERS)
def test_tracking_parameters_do_not_count(name: str) -> None:
    parameter = name.replace("*", "anything")
    assert normal(f"https://shop.example/?{parameter}=1&a=2") == "https://shop.example/?a=2"


@pytest.mark.parametrize(
    "url",
    [
        "http://\ud800/",
        "http://a b/",
        "data:text/html,x",
        "file:///etc/passwd",
        "",
        "shop.example",
        "/a",
        "ftp://h/",
        "mailto:a@h",
        "javascript:1",
        "http://",
        "http://[",
        "http://h:99999/",
    ],
)
def test_what_is_no_web_address_is_a_bad_url(url: str) -> None:
    for check in (parse, normaliser.identify):
        with pytest.raises(BadUrl) as raised:
            check(url)
        assert "\n" not in str(raised.value)


@given(url=anything)
def test_any_text_is_a_url_or_a_bad_url(url: str) -> None:
    try:
        parse(url)
    except BadUrl as error:
        str(error).encode()  # fit for a terminal


@given(link=anything)
def test_any_link_leads_to_a_page_or_is_a_bad_url(link: str) -> None:
    try:
        url = join(parse("https://shop.example/a/b?c#d"), link)
    except BadUrl:
        return
    assert url.startswith(("http://", "https://"))
    assert "#" not in url
    assert parse(url).href == url


def test_error_messages_are_short() -> None:
    with pytest.raises(BadUrl) as raised:
        parse("x" * 10_000)
    assert len(str(raised.value)) < 300


# Fingerprints


def test_a_fingerprint_is_the_start_of_the_digest() -> None:
    assert len(fingerprint("http://h/")) == FINGERPRINT_BYTES
    assert digest("http://h/").startswith(fingerprint("http://h/"))


def test_method_and_body_count() -> None:
    requests = [
        ("GET", b""),
        ("POST", b""),
        ("POST", b"a"),
        ("POST", b"b"),
        ("PUT", b"a"),
        ("GET", b"a"),
    ]
    assert len({digest("http://h/", method, body) for method, body in requests}) == len(requests)
    assert digest("http://h/", "GET", b"") == digest("http://h/")


@given(url=anything, other=anything)
def test_digests_differ_as_their_urls_do(url: str, other: str) -> None:
    assert (digest(url) == digest(other)) is (url == other)


# Hosts


@pytest.mark.parametrize(
    ("written", "host"),
    [
        ("shop.example", "shop.example"),
        ("Shop.EXAMPLE:8080", "shop.example:8080"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("shop.example:80", "shop.example"),
        ("shop.example:443", "shop.example"),
        ("[::0:1]:81", "[::1]:81"),
    ],
)
def test_hosts_are_compared_in_one_spelling(written: str, host: str) -> None:
    assert allowed_host(written) == host


@pytest.mark.parametrize(
    "written",
    ["", "https://shop.example/", "shop.example/a", "a b", "me@shop.example", "a?b", "\ud800"],
)
def test_what_is_no_host_is_named(written: str) -> None:
    with pytest.raises(BadUrl):
        allowed_host(written)


@pytest.mark.parametrize(
    ("site", "allowed", "matches"),
    [
        ("shop.example", ["shop.example"], True),
        ("www.shop.example", ["shop.example"], True),
        ("shop.example:8080", ["shop.example"], True),
        ("www.shop.example:8080", ["shop.example:8080"], True),
        ("shop.example", ["shop.example:8080"], False),
        ("shop.example:8080", ["shop.example:80"], False),
        ("myshop.example", ["shop.example"], False),
        ("example", ["shop.example"], False),
        ("shop.example.evil.test", ["shop.example"], False),
        ("[::1]", ["[::1]"], True),
        ("[::1]:81", ["[::1]"], True),
        ("[::1]:81", ["[::1]:82"], False),
        ("b.example", ["a.example", "b.example"], True),
        ("a.example", [], False),
    ],
)
def test_host_matches(site: str, allowed: list[str], matches: bool) -> None:
    assert host_matches(site, allowed) is matches
