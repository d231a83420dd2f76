"""[[schedule]] tables: what they may say, and how mistakes are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal import config
from shoal.coordinator.schedules import load_schedules, named
from shoal.errors import ConfigError

USUAL = """
rate = "5/s"

[[schedule]]
name = "shop"
target = "shop.py:Shop"
cron = "0 3 * * *"
"""


def load(folder: Path, text: str) -> None:
    (folder / "shoal.toml").write_text(text, "utf-8")
    load_schedules(folder)


def test_a_schedule_says_little(tmp_path: Path) -> None:
    (tmp_path / "shoal.toml").write_text(USUAL, "utf-8")
    shop = load_schedules(tmp_path)["shop"]
    assert shop.targets == ["shop.py:Shop"]
    assert (shop.overlap, shop.catch_up, shop.recrawl, shop.window_s) == ("skip", False, True, None)
    assert shop.keep_s == 7 * 86400


def test_or_a_lot(tmp_path: Path) -> None:
    more = """
timezone = "Europe/Berlin"
window = "6h"
overlap = "cancel"
catch_up = true
recrawl = false
seeds = "urls.csv"
sitemaps = ["https://shop.example"]
keep = "2d"
settings = { rate = "2/s", max_pages = 100 }
"""
    (tmp_path / "shoal.toml").write_text(USUAL + more, "utf-8")
    shop = load_schedules(tmp_path)["shop"]
    assert (shop.window_s, shop.keep_s) == (6 * 3600, 2 * 86400)
    assert shop.settings == {"rate": "2/s", "max_pages": 100}


def test_schedules_are_no_settings(tmp_path: Path) -> None:
    (tmp_path / "shoal.toml").write_text(USUAL, "utf-8")
    assert config.load(folder=tmp_path).rules.rate == "5/s"


def test_a_target_may_be_several_words(tmp_path: Path) -> None:
    text = USUAL.replace('"shop.py:Shop"', '["https://a.example", "https://b.example"]')
    (tmp_path / "shoal.toml").write_text(text, "utf-8")
    assert load_schedules(tmp_path)["shop"].targets == ["https://a.example", "https://b.example"]
    text = USUAL.replace('"shop.py:Shop"', '"scrapy:shop category=books"')
    (tmp_path / "shoal.toml").write_text(text, "utf-8")
    assert load_schedules(tmp_path)["shop"].targets == ["scrapy:shop", "category=books"]


def test_no_file_no_schedules(tmp_path: Path) -> None:
    assert load_schedules(tmp_path) == {}
    with pytest.raises(ConfigError, match=r"no schedule 'shop' .*there are: none"):
        named({}, "shop")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("0 3 * * *", "0 25 * * *"), "schedule shop: cron: '0 25 . . .': bad hour"),
        (('name = "shop"\n', ""), "schedule number 1: .*name"),
        (('name = "shop"', 'name = "a shop@home"'), "schedule a shop@home: name: at most 80"),
        (('target = "shop.py:Shop"', 'target = ""'), "schedule shop: target: must not be empty"),
        (('target = "shop.py:Shop"', "target = []"), "schedule shop: target: must not be empty"),
        (("cron", "corn"), "schedule shop: .*corn"),
        (('"0 3 * * *"', '"0 3 * * *"\noverlap = "often"'), "overlap: .often. is none of skip"),
        (('"0 3 * * *"', '"0 3 * * *"\nwindow = "soon"'), "schedule shop: window: .*'soon'"),
        (('"0 3 * * *"', '"0 3 * * *"\nkeep = "long"'), "schedule shop: keep: .*'long'"),
        (('"0 3 * * *"', '"0 3 * * *"\nsettings = {rate = "fast"}'), "schedule shop: .*'fast'"),
        (('"0 3 * * *"', '"0 3 * * *"\nsettings = {name = "x"}'), "name cannot be set for a run"),
        (('"0 3 * * *"', '"0 3 * * *"\nsettings = {oops = 1}'), "no setting 'oops'"),
        (("[[schedule]]", "[schedule]"), r"write \[\[schedule\]\], with two brackets"),
        (('"0 3 * * *"', f'"0 3 * * *"\n{USUAL[15:]}'), "two schedules are named 'shop'"),
    ],
)
def test_mistakes_name_the_schedule(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        load(tmp_path, USUAL.replace(*change))
