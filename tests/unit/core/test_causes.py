from __future__ import annotations

import pytest

from shoal.core.causes import Cause, Failure, cause_of, counted_by_cause, lines_of

OURS = '  File "/opt/src/shoal/spider/harvest.py", line 39, in read\n    found = x\n'
HANDLER = '  File "/home/me/spider.py", line 16, in product\n    return price(page)\n'
HELPER = '  File "/home/me/prices.py", line 3, in price\n    return None + 1\n'
LIBRARY = '  File "/home/me/.venv/lib/python3.12/site-packages/x/y.py", line 9, in get\n    z\n'
REASON = "TypeError: unsupported: 'NoneType'"


@pytest.mark.parametrize(
    ("traceback", "cause"),
    [
        (OURS + HANDLER, "TypeError at spider.py:16 in product"),
        (OURS + HANDLER + HELPER, "TypeError at prices.py:3 in price"),
        (OURS + HANDLER + LIBRARY, "TypeError at spider.py:16 in product"),
        (LIBRARY, "TypeError at y.py:9 in get"),
        ("no traceback at all", REASON),
        (OURS, REASON),
        (OURS.replace("harvest", "spider").replace("read", "product"), REASON),
    ],
)
def test_a_cause_names_the_line_of_the_users_code(traceback: str, cause: str) -> None:
    assert cause_of(REASON, traceback, "product") == cause


def test_a_cause_leaves_out_addresses() -> None:
    assert cause_of("redirected: https://a.example/1?x=2", "", "parse") == "redirected: …"


def test_causes_are_counted_and_the_most_frequent_is_first() -> None:
    failures = [Failure("a", "a1", "/1"), Failure("b", "b1", "/2"), Failure("b", "b2", "/3")]
    assert counted_by_cause(failures) == [Cause(2, "b", "b1", "/2"), Cause(1, "a", "a1", "/1")]


def test_many_causes_are_summed_up_and_a_sample_says_so() -> None:
    causes = [Cause(10 - n, f"c{n}") for n in range(7)]
    lines = lines_of(causes, 1_000, "dead tasks")
    assert lines[0] == "10 × c0"
    assert lines[5:] == ["9 × other causes", "(of 49 dead tasks that were looked at)"]


def test_a_cause_is_a_line_however_much_was_said() -> None:
    assert len(cause_of("x" * 1_000_000, "", "parse")) < 300
