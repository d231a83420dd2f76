"""Arguments of spiders: which attributes are some, what may be said, what is kept."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import pytest
from msgspec import Meta

from shoal.config import Rules, Settings, read_rules
from shoal.errors import ConfigError
from shoal.fleet.target import create
from shoal.spider.arguments import MAX_BYTES, arguments_of, as_json, read_arguments, shown, unlike
from shoal.spider.crawl_names import name_with, settings_with
from shoal.spider.spider import Spider


class Connection:
    """Something that nobody can type."""


class Shop(Spider):
    name = "shop-{category}"
    category: str
    limit: int = 10
    share: float = 0.5
    sale: bool = False
    tags: list[str] = []  # noqa: RUF012
    sizes: frozenset[int] = frozenset()
    prices: dict[str, float] = {}  # noqa: RUF012
    order: Literal["price", "name"] = "price"
    since: date | None = None
    few: Annotated[int, Meta(ge=1)] = 1

    rate: str = "2/s"
    start_urls: tuple[str, ...] = ()
    connection: Connection
    later: NotThereYet  # type: ignore[name-defined]  # noqa: F821
    kinds: ClassVar[int] = 3
    anything: Any = None
    _own: int = 1
    seen: set[str]
    made: int = 0

    def __init__(self) -> None:
        self.seen = set()

    def parse(self, page: Any) -> None:
        self.made += 1


class Narrow(Shop):
    category: Literal["books", "toys"]
    limit = 20


class Free(Spider):
    pass


ARGUMENTS = sorted(
    ["category", "limit", "share", "sale", "tags", "sizes", "prices", "order", "since", "few"]
)


def mistake(spider: type[Spider] = Shop, **said: Any) -> str:
    with pytest.raises(ConfigError) as raised:
        read_arguments(spider, said)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_what_is_annotated_is_an_argument_unless_it_is_something_else() -> None:
    assert sorted(arguments_of(Shop)) == ARGUMENTS
    assert arguments_of(Free) == {}


def test_a_class_below_changes_what_it_says() -> None:
    known = arguments_of(Narrow)

    assert sorted(known) == ARGUMENTS
    assert known["limit"].default == 20
    assert mistake(Narrow, category="cars") == (
        "Narrow: argument category: 'cars' is none of books, toys"
    )


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("limit", "50", 50),
        ("share", "0.25", 0.25),
        ("sale", "yes", True),
        ("sale", "false", False),
        ("tags", "a, b", ["a", "b"]),
        ("tags", '["a,b"]', ["a,b"]),
        ("tags", ["a", "b,c"], ["a", "b,c"]),
        ("sizes", "1,2", {1, 2}),
        ("prices", '{"a": 1}', {"a": 1.0}),
        ("since", "2026-02-03", date(2026, 2, 3)),
        ("category", "yes, [1", "yes, [1"),
    ],
)
def test_text_is_read_by_its_type(name: str, text: Any, value: Any) -> None:
    said = {"category": "books", name: text}

    assert read_arguments(Shop, said)[name] == value
    # As it is kept it is read once more, by another worker.
    assert read_arguments(Shop, as_json(Shop, said))[name] == value


def test_mistakes_are_one_line() -> None:
    assert mistake() == "Shop needs an argument: -a category=..."
    assert mistake(categroy="x") == "Shop has no argument 'categroy'; did you mean category?"
    assert mistake(Free, x="y") == (
        "Free has no arguments: declare them in its class, for instance x: str"
    )
    assert mistake(category="x", limit=["1", "2"]).endswith("limit: takes one value, not several")
    assert "argument limit" in mistake(category="x", limit="many")
    since = mistake(category="x", since="yesterday")
    assert since == "Shop: argument since: write it as 2026-01-31, not 'yesterday'"
    assert "argument few" in mistake(category="x", few="0")
    assert "not JSON" in mistake(category="x", prices="{")
    assert "not finite" in mistake(category="x", share="nan")
    with pytest.raises(ConfigError, match="bytes"):
        as_json(Shop, {"category": "x" * MAX_BYTES})


def test_a_crawl_is_named_by_what_it_is_told() -> None:
    settings = settings_with(Shop, Settings(), {"category": "books"})

    assert settings.name == "shop-books"
    assert settings.rules.args == {"category": "books"}
    assert settings_with(Shop, Settings(name="x"), {"category": "a/b"}).name == "x"
    for odd in ("a/b", "", "..", "a b", "x" * 100):
        with pytest.raises(ConfigError, match="cannot be part of a name"):
            name_with(Shop, {"category": odd})


def test_a_name_holds_nothing_but_arguments() -> None:
    class Sly(Shop):
        name = "{category.__class__}"

    with pytest.raises(ConfigError, match="no argument"):
        name_with(Sly, {"category": "books"})


def test_a_spider_knows_its_arguments_when_it_is_made() -> None:
    class Late(Shop):
        name = "shop-{category}"

        def __init__(self) -> None:
            super().__init__()
            self.__dict__["twice"] = self.category * 2

    made = create(Late, args={"category": "ab", "limit": 3})

    assert isinstance(made, Late)
    assert (made.category, made.limit, made.order, made.name) == ("ab", 3, "price", "shop-ab")
    assert vars(made)["twice"] == "abab"


def test_rules_are_kept_with_arguments_and_read_without() -> None:
    kept = msgspec.json.encode(Rules(args={"category": "books"})).decode()

    assert read_rules(kept).args == {"category": "books"}
    assert read_rules("{}").args == {}


def test_what_a_crawl_has_been_told_is_compared_with_the_defaults_in_mind() -> None:
    books = {"category": "books"}

    assert not unlike(Shop, books, {"category": "books", "limit": "10"})
    assert not unlike(Shop, {}, books)  # It was started by a version that had no arguments.
    assert unlike(Shop, books, {"category": "toys"})
    assert unlike(Shop, {"category": "books", "limit": 5}, books)


def test_what_is_shown_hides_what_looks_like_a_password() -> None:
    args = {"keyword": "a", "api_key": "s3cret", "source": "http://me:pw@x.example/", "n": [1, 2]}

    assert shown(args) == "keyword=a, api_key=***, source=http://***@x.example/, n=1,2"
    assert shown({}) == "nothing"
    assert len(shown({"x": "y" * 1000})) == 200
