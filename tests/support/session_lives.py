"""Random histories of crawls with accounts, for two frontiers that must behave alike.

As in exit_lives.py, two crawls share the accounts and the exits that these use. Each crawl has one
host, and all its tasks are in one lane.
"""

from __future__ import annotations

from hypothesis import strategies as st

from shoal.core.exits import ExitEntry, PoolRules
from shoal.core.identities import IdentityReport, LoginChange
from support.exit_lives import CHAINED, CRAWLS, LEASE_S, MANY, POOLS, TASKS, TIMEOUT_S
from support.exits import RES
from support.frontiers import open_rules
from support.sessions import ALICE, BOB, CAROL, GROUP, SHOP, identity, logged_in

ACCOUNTS = (ALICE, BOB, CAROL)

WITH_ACCOUNTS = {
    crawl: [
        logged_in(f"{crawl}.example/{n}", SHOP, priority=n, chain="steps" if n in CHAINED else None)
        for n in range(TASKS)
    ]
    for crawl in CRAWLS
}

rules_with_accounts = st.builds(
    open_rules,
    rate=st.sampled_from(["none", "none", "1/s"]),
    concurrency_per_host=st.sampled_from([1, 3, MANY]),
    pools=st.just(POOLS),
    sessions=st.just((SHOP,)),
    lease_s=st.just(LEASE_S),
    max_losses=st.just(2),
)

groups = st.builds(
    PoolRules,
    name=st.just(GROUP),
    concurrency=st.sampled_from([1, 1, 2]),
    through=st.sampled_from(["", RES]),
    timeout_s=st.just(TIMEOUT_S),
)
ways = st.builds(
    PoolRules,
    name=st.just(RES),
    interval_s=st.sampled_from([0.0, 0.0, 0.7]),
    pair_interval_s=st.sampled_from([0.0, 0.0, 2.3]),
    concurrency=st.sampled_from([1, 2, 8]),
    timeout_s=st.just(TIMEOUT_S),
    is_gateway=st.sampled_from([False, False, True]),
    per_request=st.sampled_from([0.0, 1.25]),
    budget=st.sampled_from([0.0, 0.0, 6.1]),
    budget_period_s=st.just(977.7),
    most_bytes=st.just(1_000_000),
)

reports = st.builds(
    IdentityReport,
    change=st.sampled_from([*LoginChange, LoginChange.IN, LoginChange.IN, LoginChange.FAILED]),
    reason=st.sampled_from(["", "the password is wrong"]),
    jar=st.sampled_from([None, b"", b"cookies", b"\xc1\x00"]),
    user_agent=st.sampled_from(["", "Mozilla"]),
    login_url=st.sampled_from(["", "http://crawl.example/login"]),
)
some_reports = st.lists(st.none() | reports | reports, min_size=1, max_size=5)


def accounts_of(count: int) -> list[ExitEntry]:
    """Entries for the first `count` accounts."""
    return [ExitEntry(f"@{identity(name)}") for name in ACCOUNTS[:count]]
