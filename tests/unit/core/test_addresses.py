"""Addresses of servers: read as users write them, shown without their secrets."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.addresses import Address, masked, parse_address
from shoal.errors import ConfigError
from shoal.frontier import open_frontier

SECRET = "correct-horse"
PORT = 6379

# No letters or digits, and nothing that the rest of an address has: what is found is the secret.
odd = st.text(st.characters(exclude_categories=["Cs", "L", "N"]), min_size=1, max_size=8)
passwords = st.builds("{}Secret{}".format, odd, odd) | st.just("") | st.just("p")
schemes = st.sampled_from(
    [
        "redis",
        "rediss",
        "redis+sentinel",
        "redis+cluster",
        "redis-stream",
        "postgresql",
        "amqp",
        "sqs",
    ]
)
users = st.sampled_from(["", "shoal", "us-er"])
tails = st.sampled_from(
    ["host", "host:1", "h1,h2:2/service", "[::1]:6379/0", "host/0?tls=yes", "", "host:port"]
)


def parse(text: str) -> Address:
    return parse_address(text, PORT)


def said_of(text: str) -> str:
    """What is shown of an address, or the error."""
    try:
        return parse(text).shown
    except ConfigError as error:
        return str(error)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("redis://host", [("host", 6379)]),
        ("redis://host:7000", [("host", 7000)]),
        ("redis://host:7000/", [("host", 7000)]),
        ("redis://[::1]", [("::1", 6379)]),
        ("redis://[2001:db8::1]:7000/2", [("2001:db8::1", 7000)]),
        ("redis+cluster://h1,h2:2,[::3]:3", [("h1", 6379), ("h2", 2), ("::3", 3)]),
        ("redis://user:p@host", [("host", 6379)]),
        ("redis://host:65535?ca=/etc/ca.pem", [("host", 65535)]),
    ],
)
def test_hosts(text: str, expected: list[tuple[str, int]]) -> None:
    assert parse(text).hosts == expected


@pytest.mark.parametrize(
    ("login", "user", "password"),
    [
        ("", "", ""),
        (":p@", "", "p"),
        ("u:p@", "u", "p"),
        ("u@", "u", ""),
        ("u:p:q@", "u", "p:q"),
        ("u:p@q@", "u", "p@q"),
        ("u:a/b?c#d@", "u", "a/b?c#d"),
        ("u:50%@", "u", "50%"),
        ("u:%40%3A%2F%23%25@", "u", "@:/#%"),
        ("us%3Aer:p@", "us:er", "p"),
        (":pässwörd@", "", "pässwörd"),
    ],
)
def test_logins(login: str, user: str, password: str) -> None:
    address = parse(f"redis://{login}host:7000/3?ca=x")
    assert (address.user, address.password) == (user, password)
    assert (address.hosts, address.path, address.options) == ([("host", 7000)], "3", {"ca": "x"})


@pytest.mark.parametrize(
    ("path", "segments"),
    [("", []), ("/", []), ("/a", ["a"]), ("/a%2Fb/c", ["a/b", "c"]), ("/%2F/q", ["/", "q"])],
)
def test_parts_of_a_path(path: str, segments: list[str]) -> None:
    assert parse(f"amqp://host{path}?ca=x").segments == segments


@given(password=odd)
def test_an_escaped_password_is_read_as_it_was(password: str) -> None:
    assert parse(f"redis://u:{quote(password, safe='')}@h").password == password


@pytest.mark.parametrize(
    "text",
    [
        *("redis:", "redis:host", "redis:/host", "redis//host", "host", ""),
        *("redis://", "redis://:7000", "redis://u:p@", "redis://h1,,h2", "redis://h1,"),
        *("redis://host:seven", "redis://host:-1", "redis://host:65536", "redis://host:0"),
        *("redis://host:1:2", "redis://::1", "redis://host:²", "redis://host:٣"),
        *(
            "redis://ho st",
            "redis://host\n",
            "redis://[::1",
            "redis://[::1]x",
            "redis://[::1]7000",
            "redis://[]:1",
        ),
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ConfigError, match="not a"):
        parse(text)


class TestSecrets:
    @given(schemes, users, passwords, tails)
    def test_never_in_what_is_shown(self, scheme: str, user: str, password: str, tail: str) -> None:
        text = f"{scheme}://{user}:{password}@{tail}"
        assert "Secret" not in masked(text) + said_of(text)
        if "=" not in password:  # Else it may look like an option, and still less is shown.
            assert masked(text) == f"{scheme}://{user}:***@{tail}"

    @pytest.mark.parametrize("scheme", ["redis", "rediss", "redis+cluster", "redis-stream"])
    def test_the_key_of_a_list_is_its_name(self, scheme: str) -> None:
        assert masked(f"{scheme}://u:p@h?key=urls") == f"{scheme}://u:***@h?key=urls"

    @given(schemes, users, passwords, tails)
    def test_nor_escaped(self, scheme: str, user: str, password: str, tail: str) -> None:
        text = f"{scheme}://{user}:{quote(password, safe='')}@{tail}"
        assert masked(text) == f"{scheme}://{user}:***@{tail}"

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("redis+sentinel://h/s?sentinel_password=x%20y", "sentinel_password=***"),
            ("redis+sentinel://h/s?tls=yes&sentinel_password=x&ca=y", "sentinel_password=***&ca=y"),
            ("redis://h?password=x", "?password=***"),
            ("redis://h?PASSWORD=x", "?PASSWORD=***"),
            ("redis://u:p@h/s?sentinel_password=x", "redis://u:***@h/s?sentinel_password=***"),
            ("redis+sentinel://h:1/s?sentinel_password=x@y", "redis+sentinel://***"),
            ("redis://u:a&Secret=b@h", "redis://***"),
            ("redis-stream://h?api_key=x&max=5", "?api_key=***&max=5"),
            ("redis-stream://h?secret-key=x", "?secret-key=***"),
            ("redis-stream://h?keys=x", "?keys=***"),
            ("redis://h?apikey=x", "?apikey=***"),
            ("amqp://h?key=x", "?key=***"),
            ("s3://bucket?key=x", "?key=***"),
        ],
    )
    def test_nor_as_an_option(self, text: str, shown: str) -> None:
        assert masked(text).endswith(shown)

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            (f"host=x password={SECRET} dbname=y", "host=x password=***"),
            (f"password={SECRET} host=x", "password=***"),
            (f"host=x\tPASSWORD = '{SECRET} {SECRET}'", "host=x\tPASSWORD =***"),
            (f"Server=x;Pwd={SECRET}", "Server=x;Pwd=***"),
            (f"host=x sslpassword={SECRET}", "host=x sslpassword=***"),
        ],
    )
    def test_nor_of_what_is_no_url(self, text: str, shown: str) -> None:
        assert masked(text) == shown

    @pytest.mark.parametrize("place", ["a@{}", "{}@b", "{}@b@c", "p={} password={}@{}"])
    def test_nor_of_what_is_no_url_with_an_at(self, place: str) -> None:
        assert SECRET not in masked(f"host=x password={place.format(*[SECRET] * 3)} dbname=y")

    @pytest.mark.parametrize("text", ["redis-stream://h?key=name", "redis-stream://h?max=5&Key=a"])
    def test_the_name_of_a_stream_is_none(self, text: str) -> None:
        assert masked(text) == text
        assert masked(f"{text}&token=x") == f"{text}&token=***"

    @pytest.mark.parametrize(
        "address",
        [
            f"redis:/:{SECRET}@host",
            f"redis::{SECRET}@host",
            f"redis:user:{SECRET}@host",
            f"redis//user:{SECRET}@host",
            f"Redis://user:{SECRET}@host",
            f"user:{SECRET}@host",
            f":{SECRET}@host",
            f"redis://user:{SECRET}",
            f"redis://:{SECRET}",
            f"redis://user:{SECRET}@host:99999",
            f"redis://user:{SECRET}@host/nine",
            f"redis://user:{SECRET}@h1,h2",
            f"redis://user:{SECRET}@host?unknown=1",
            f"redis://host?password={SECRET}",
            f"redis://host?pasword={SECRET}",
            f"redis://host?Auth={SECRET}",
            f"redis+sentinel://user:{SECRET}@h1,h2",
            f"redis+sentinel://h1,h2?sentinel_password={SECRET}",
            f"redis+cluster://user:{SECRET}@host?shards=none",
            f"redis+cluster://user:{SECRET}@host?tls=perhaps",
            f"amqp://user:{SECRET}@host",
        ],
    )
    def test_nor_in_an_error(self, address: str) -> None:
        with pytest.raises(ConfigError) as raised:
            open_frontier(address)
        assert SECRET not in str(raised.value)
        assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("redis://host/nine", "not a database number"),
        ("redis://host/²", "not a database number"),
        ("redis+sentinel://host/service/x", "not a database number"),
        ("redis+sentinel://host", "the service is missing"),
        ("redis://h1,h2", r"several hosts need redis\+sentinel or redis\+cluster"),
        ("redis://host?shards=3", r"unknown option shards \(there are: none\)"),
        ("redis+cluster://host?shards=0", "shards"),
        ("redis+cluster://host?shards=-1", "shards"),
        ("redis+cluster://host?shards=many", "shards"),
        ("redis+cluster://host?shards=²", "shards"),
        ("redis+cluster://host?tls=perhaps", "tls"),
        ("redis+cluster://host/1", "a cluster has no databases"),
        ("http://host", "no frontier for"),
    ],
)
def test_what_a_frontier_refuses_at_once(address: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        open_frontier(address)
