"""Seeds from files: each line by itself, whatever the others hold."""

from __future__ import annotations

import pytest

from shoal.core.task import Task
from shoal.errors import BadUrl, ConfigError
from shoal.seeds.files import read_csv, read_lines


def csv_of(text: str) -> list[Task | BadUrl]:
    return [seed.task for seed in read_csv(text.encode().splitlines(keepends=True))]


def test_lines_are_urls_or_tasks_and_keep_their_numbers() -> None:
    lines = [b"https://a.example/1\n", b"\n", b'{"url": "https://a.example/2"}\n', b"{broken\n"]
    first, second, third = read_lines(lines)
    assert first == (1, Task(url="https://a.example/1"))
    assert second == (3, Task(url="https://a.example/2"))
    assert third.line == 4
    assert isinstance(third.task, BadUrl)


def test_columns_are_fields_of_the_task_or_its_meta() -> None:
    header = "url,handler,priority,max_retries,dont_filter,meta,region\n"
    row = 'https://a.example/1,product,7,2,yes,"{""shop"": 3}",north\n'
    assert csv_of(header + row) == [
        Task(
            url="https://a.example/1",
            job_type="product",
            priority=7,
            max_retries=2,
            dont_filter=True,
            meta={"region": "north", "shop": 3},
        )
    ]


def test_a_body_of_bytes_in_a_column() -> None:
    text = "url,method,body,body_is_base64\nhttps://a.example/1,POST,/w==,yes\n"
    wanted = Task(url="https://a.example/1", method="POST", body="/w==", body_is_base64=True)
    assert csv_of(text) == [wanted]


def test_empty_cells_and_short_rows_mean_the_default() -> None:
    text = "url,priority,region\nhttps://a.example/1,,\nhttps://a.example/2\n\n"
    assert csv_of(text) == [Task(url="https://a.example/1"), Task(url="https://a.example/2")]


def test_a_mark_of_byte_order_and_quoted_line_breaks_are_read() -> None:
    text = '\ufeffurl,note\nhttps://a.example/1,"two\nlines"\nhttps://a.example/2,\n'
    seeds = list(read_csv(text.encode().splitlines(keepends=True)))
    assert [seed.line for seed in seeds] == [3, 4]
    assert seeds[0].task == Task(url="https://a.example/1", meta={"note": "two\nlines"})


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("https://a.example/1,high,\n", "priority"),
        ("https://a.example/1,1,[1]\n", "object"),
        ("https://a.example/1,1,{}\n,more", "meta"),
        ("https://a.example/1,1,{},more\n", "4 cells for 3 columns"),
        (",1,\n", "url"),
    ],
)
def test_a_bad_row_is_skipped_alone(row: str, says: str) -> None:
    bad, *_, good = csv_of(f"url,priority,meta\n{row}\nhttps://a.example/2,1,\n")
    assert good == Task(url="https://a.example/2", priority=1)
    if isinstance(bad, BadUrl):
        assert says in str(bad)


def test_a_row_that_is_not_text_is_skipped_alone() -> None:
    lines = [b"url\n", b"https://a.example/\xff\n", b"https://a.example/2\n"]
    bad, good = (seed.task for seed in read_csv(lines))
    assert str(bad) == "not UTF-8"
    assert good == Task(url="https://a.example/2")


@pytest.mark.parametrize("text", ["", "address,priority\n", "https://a.example/1\n"])
def test_a_file_without_a_column_of_urls_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="`url` among them"):
        csv_of(text)
