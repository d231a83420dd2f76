"""Configuration: who wins, what is refused, and in which words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.config import SETTINGS, Rules, Settings, build, by_name, load, read_rules, variable_of
from shoal.errors import ConfigError
from shoal.frontier.port import Frontier

OTHER_VALUES = {
    "rate": "7/m",
    "seen": "bloom",
    "seen_error": "0.25",
    "seen_for": "7d",
    "fingerprints": "scrapy",
    "cookies": "visit",
    "history": "always",
    "refresh_after": "1h",
    "archive_format": "warc",
    "publish_format": "celery",
    "file_types": "image/*",
}
"""For settings that could not be 7."""


def mistake(values: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as raised:
        build(values)
    message = str(raised.value)
    assert "\n" not in message
    return message


def test_the_defaults_are_polite() -> None:
    settings = load()
    assert settings == Settings()
    rules = settings.rules
    assert (rules.rate, rules.robots, rules.max_retries) == ("1/s", True, 3)
    assert not settings.allow_private


@pytest.mark.parametrize("name", ["lease_s", "timeout_s"])
@pytest.mark.parametrize("value", [float("inf"), "inf"])
def test_no_time_is_without_end(name: str, value: Any) -> None:
    """Orders and rules are JSON, which would have null for it."""
    assert name in mistake({name: value})


def test_later_sources_win(tmp_path: Path) -> None:
    (tmp_path / "shoal.toml").write_text(
        'rate = "1/m"\nworkers = 2\nconcurrency = 3\nmax_depth = 4\n'
    )
    sources: dict[str, Any] = {
        "folder": tmp_path,
        "spider": {"rate": "2/m", "workers": 5, "concurrency": 6},
        "environ": {"SHOAL_RATE": "3/m", "SHOAL_WORKERS": "7", "OTHER": "x"},
        "options": {"rate": "4/m", "workers": None},
    }
    settings = load(**sources)
    assert settings.rules.rate == "4/m"
    assert settings.workers == 7
    assert settings.concurrency == 6
    assert settings.rules.max_depth == 4
    assert settings.rules.max_retries == 3


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_can_come_from_every_source(name: str, tmp_path: Path) -> None:
    default = SETTINGS[name].default
    text = OTHER_VALUES.get(name)
    if text is None:
        text = str(not default).lower() if isinstance(default, bool) else "7"
    (tmp_path / "shoal.toml").write_text(f'{name} = "{text}"\n')
    sources: list[dict[str, Any]] = [
        {"folder": tmp_path},
        {"environ": {variable_of(name): text}},
        {"options": {name: text}},
        {"spider": {name: text}},
    ]
    found = [by_name(load(**source))[name] for source in sources]
    assert found == [found[0]] * 4
    assert found[0] != default


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_says_what_it_is(name: str) -> None:
    assert SETTINGS[name].description


@pytest.mark.parametrize("name", [name for name, setting in SETTINGS.items() if setting.is_list])
def test_lists_may_be_text_with_commas(name: str) -> None:
    one, two = ("image/*", "text/csv") if name == "file_types" else ("a", "b")
    for value in (f"{one}, {two} ,,", [one, two], (one, two)):
        assert by_name(build({name: value}))[name] == (one, two)
    assert by_name(build({name: ""}))[name] == ()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"rate": "fast"}, "rate: not a rate: 'fast' (write 2/s, 30/m, 100/h, auto or none)"),
        ({"rate": 5}, "rate: not a rate: '5' (write 5/s, 30/m, 100/h, auto or none)"),
        ({"seen": "some"}, "seen: 'some' is none of exact, bloom, auto"),
        ({"seen_error": 0.5}, "seen_error must be a number, more than 0, less than 0.5"),
        ({"seen": 5}, "seen: 5 is none of exact, bloom, auto"),
        ({"archive_format": "zip"}, "archive_format: 'zip' is none of blobs, warc"),
        ({"seen_for": "7"}, "seen_for: not a time span: '7' (write 90s, 15m, 12h or 7d)"),
        ({"workers": 0}, "workers must be a whole number, at least 1"),
        ({"workers": "many"}, "workers must be a whole number, at least 1"),
        ({"max_pages": "0"}, "max_pages must be a whole number, at least 1"),
        ({"max_depth": -1}, "max_depth must be a whole number, at least 0"),
        ({"robots": "maybe"}, "robots must be yes or no"),
        ({"allowed_hosts": 5}, "allowed_hosts must be a list of texts"),
        ({"allowed_hosts": ["a", 5]}, "allowed_hosts must be a list of texts"),
        ({"timeout_s": 0}, "timeout_s must be a number, more than 0"),
        (
            {"allowed_hosts": "shop.example, https://a.example/"},
            "allowed_hosts: not a host: 'https://a.example/' (write it like shop.example)",
        ),
        (
            {"file_types": "image/*, png"},
            "file_types: 'png' is no media type: write 'image/*' or 'application/pdf'",
        ),
        ({"user_agent": ""}, "user_agent must be text, not empty"),
        ({"rules": {"rate": "1/s"}}, "no setting 'rules'"),
        ({"wrokers": 2, "rat": 1}, "no setting 'rat'; did you mean rate?"),
    ],
)
def test_a_wrong_setting_is_named_in_one_line(values: dict[str, Any], expected: str) -> None:
    assert mistake(values) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"rate = ", "shoal.toml: "),
        (b"\xff", "shoal.toml: "),
        (b"[section]\nrate = '1/s'\n", "shoal.toml: no setting 'section'"),
        (b"[spiders.shop]\n", "shoal.toml: no setting 'spiders'; did you mean spider?"),
        (b"rate = 5\n", "shoal.toml: rate: not a rate: '5' (write 5/s, "),
    ],
)
def test_a_wrong_file(text: bytes, expected: str, tmp_path: Path) -> None:
    (tmp_path / "shoal.toml").write_bytes(text)
    with pytest.raises(ConfigError) as raised:
        load(folder=tmp_path)
    assert str(raised.value).startswith(expected)


def test_a_folder_in_the_files_place(tmp_path: Path) -> None:
    (tmp_path / "shoal.toml").mkdir()
    with pytest.raises(ConfigError, match=r"^shoal\.toml: "):
        load(folder=tmp_path)


def test_an_unknown_variable_is_not_ours_to_judge() -> None:
    assert load(environ={"SHOAL_HOME": "/x", "PATH": "/bin"}) == Settings()


def test_an_address_may_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("postgresql://shoal:s3cret@db-host/shop\n")
    variables = {"SHOAL_RESULTS_FILE": str(tmp_path / "secret"), "SHOAL_STATE_FILE": ""}
    assert load(environ=variables) == load(
        environ={"SHOAL_RESULTS": "postgresql://shoal:s3cret@db-host/shop"}
    )
    in_files = {name for name, setting in SETTINGS.items() if setting.is_in_files}
    assert in_files == {"frontier", "state", "results", "archive", "file_store", "publish"}
    # What names a file already would be taken for one of one line.
    assert load(environ={"SHOAL_PROXIES_FILE": str(tmp_path / "secret")}) == Settings()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "SHOAL_RESULTS_FILE: {path}: No such file or directory"),
        (b"", "SHOAL_RESULTS_FILE: {path}: write one address, in one line"),
        (b"sqlite:///s3cret\nx", "SHOAL_RESULTS_FILE: {path}: write one address, in one line"),
        (b"s3cret" * 5000, "SHOAL_RESULTS_FILE: {path}: write one address, in one line"),
        (b"\xffs3cret", "SHOAL_RESULTS_FILE: cannot be read as text"),
    ],
)
def test_what_is_no_address_in_a_file_is_told_without_a_word_of_it(
    content: bytes | None, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as raised:
        load(environ={"SHOAL_RESULTS_FILE": str(path)})
    assert str(raised.value) == expected.format(path=path)


def test_an_address_is_said_once(tmp_path: Path) -> None:
    variables = {"SHOAL_RESULTS": "sqlite:///a.db", "SHOAL_RESULTS_FILE": str(tmp_path / "b")}
    with pytest.raises(ConfigError, match=r"^SHOAL_RESULTS and SHOAL_RESULTS_FILE are both set$"):
        load(environ=variables)


def test_rules_are_the_fleets_part_of_the_settings() -> None:
    rules = build({"rate": "5/s", "max_depth": 2, "workers": 9}).rules
    assert rules == Rules(rate="5/s", max_depth=2)


async def stored_by_mistake(frontier: Frontier, settings: Settings) -> None:
    """Never called: mypy would complain of a comment that it has no need for."""
    await frontier.start("shop", settings)  # type: ignore[arg-type]


def test_no_setting_of_a_process_is_stored_with_a_crawl() -> None:
    assert not issubclass(Settings, Rules)
    own = {name for name in SETTINGS if name not in Rules.__struct_fields__}
    assert own == set(Settings.__struct_fields__) - {"rules", "proxy_pools", "session_groups"}
    secrets = {name for name, setting in SETTINGS.items() if setting.is_secret}
    stores = {"frontier", "state", "results", "archive", "file_store", "publish"}
    assert secrets == stores | {"proxies", "accounts", "encrypt_key"}
    assert secrets <= own


STORED = (
    '{"rate":"1/s","concurrency_per_host":16,"max_pages":null,"max_depth":null,'
    '"max_pages_per_host":null,"max_pages_per_shape":null,"max_retries":3,'
    '"max_links_per_page":20000,"stop_after_errors":null,"allowed_hosts":["a.example"],"robots":true,"drop_params":[],'
    '"fingerprints":"shoal","cookies":"off","lease_s":30.0,"max_losses":5,"pools":[],"proxy_pool":null,'
    '"sessions":[],"session":null,'
    '"max_blocks":5,"seen":"exact","seen_error":0.001,'
    '"seen_for":"7d","history":"changed","refresh_after":null,"canonical":false,"simhash":false,'
    '"file_types":[],"previous":null,"args":{}}'
)
"""The rules of a crawl that may be under way."""


def test_stored_rules_stay_as_they_are() -> None:
    rules = Rules(allowed_hosts=("a.example",), drop_params=(), seen_for="7d")
    assert msgspec.json.encode(rules).decode() == STORED
    assert read_rules(STORED) == rules
    before = STORED.replace('"stop_after_errors":null,', "")
    before = before.replace('"max_pages_per_host":null,"max_pages_per_shape":null,', "")
    assert read_rules(before) == rules


def test_rules_of_older_and_newer_versions_can_be_read() -> None:
    assert read_rules('{"rate":"2/s"}') == Rules(rate="2/s")
    assert read_rules('{"rate":"2/s","of_tomorrow":1}') == Rules(rate="2/s")
    with pytest.raises(ConfigError, match=r"^seen: 'cuckoo' is none of exact, bloom, auto$"):
        read_rules('{"seen":"cuckoo"}')


_values = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text())


@given(values=st.dictionaries(st.sampled_from([*SETTINGS]) | st.text(), _values))
def test_any_values_are_settings_or_a_config_error(values: dict[str, Any]) -> None:
    try:
        settings = build(values)
    except ConfigError as error:
        assert str(error)  # noqa: PT017 - that it has words is all there is to say
    else:
        assert build(by_name(settings)) == settings


@pytest.mark.parametrize(("name", "most"), [("max_retries", 254), ("max_losses", 255)])
def test_no_more_than_a_queue_can_count(name: str, most: int) -> None:
    assert by_name(build({name: most}))[name] == most
    with pytest.raises(ConfigError, match=f"^{name}: {most + 1} is more than {most}$"):
        build({name: most + 1})
    old = read_rules(f'{{"{name}": 100000}}')
    assert getattr(old, name) == 100_000, "a crawl that was started with it can be read"
