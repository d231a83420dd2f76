"""The contract of the frontier port. Every backend passes it, on its real server: all of it but
the tests of a capability that it says it does not have.

A test module makes it run by supplying a fixture and importing the suite:

    @pytest.fixture
    async def backend(...) -> AsyncIterator[Backend]:
        async with checked(MyBackend(...)) as backend:
            yield backend

    from contract.frontier_suite import *

After each test, `checked` makes sure that the counters of every crawl add up.
"""

from __future__ import annotations

from contract.frontier.adding import TestAdd, TestAddByState, TestStart
from contract.frontier.asking import (
    TestDead,
    TestFindOthers,
    TestPurgeDead,
    TestQueries,
    TestRetryDead,
    TestTwoCrawls,
)
from contract.frontier.chains import (
    TestBlocked,
    TestChain,
    TestChainAcrossHosts,
    TestFollowUpsOfChains,
)
from contract.frontier.chains_cookies import TestCookiesOfChains, TestCookiesOfTasks
from contract.frontier.chains_kept import TestChainRace, TestChainsLookedAfter
from contract.frontier.clocks import TestClockSetBack, TestClockSetForward, TestFrontiersTime
from contract.frontier.counting import TestLosses, TestTries
from contract.frontier.exchanging import TestExchange
from contract.frontier.exits_blocks import TestBlockedExits, TestGateway, TestTasksThatWereBlocked
from contract.frontier.exits_budgets import TestBudget
from contract.frontier.exits_clocks import TestInFlight, TestRotation, TestThreeClocks
from contract.frontier.exits_faults import TestFaults, TestUnreached
from contract.frontier.exits_kept import (
    TestClockOfExits,
    TestFleetOfExits,
    TestLentToTheDead,
    TestStaleByExits,
)
from contract.frontier.exits_lanes import (
    TestChainsInLanes,
    TestDeadInLanes,
    TestLossesInLanes,
    TestNothingElseWaits,
)
from contract.frontier.exits_pools import (
    TestLanes,
    TestPools,
    TestWhatAWorkerAsksFor,
    TestWithoutPools,
)
from contract.frontier.exits_sites import TestSiteWideBlocks, TestTiers
from contract.frontier.exits_starving import TestDirect, TestStarving
from contract.frontier.finishing import TestFollowUps, TestManyFollowUps, TestStale, TestVerdicts
from contract.frontier.leasing import (
    TestConcurrency,
    TestFairness,
    TestLease,
    TestMaxPages,
    TestWait,
)
from contract.frontier.losing import TestReclaim, TestRelease, TestRenew
from contract.frontier.many import TestManyLeases, TestManyPriorities
from contract.frontier.noting import TestLeading, TestNotes
from contract.frontier.ordering import TestOrder
from contract.frontier.pacing import TestAuto, TestBreaker, TestLatency
from contract.frontier.politeness import TestPushback, TestRate, TestRobots, TestSlots
from contract.frontier.racing import TestRace
from contract.frontier.refusing import TestUnavailable
from contract.frontier.registering import TestInbox, TestWorkers
from contract.frontier.remembering import TestRemember
from contract.frontier.sharing import TestFleet, TestGone, TestPlainAndShared, TestShares
from contract.frontier.sharing_among import TestAmongOthers, TestNothingIsLeftBehind, TestUnshared
from contract.frontier.steering import TestCancel, TestEnd, TestForget, TestPause, TestUnknown

__all__ = [
    "TestAdd",
    "TestAddByState",
    "TestAmongOthers",
    "TestAuto",
    "TestBlocked",
    "TestBlockedExits",
    "TestBreaker",
    "TestBudget",
    "TestCancel",
    "TestChain",
    "TestChainAcrossHosts",
    "TestChainRace",
    "TestChainsInLanes",
    "TestChainsLookedAfter",
    "TestClockOfExits",
    "TestClockSetBack",
    "TestClockSetForward",
    "TestConcurrency",
    "TestCookiesOfChains",
    "TestCookiesOfTasks",
    "TestDead",
    "TestDeadInLanes",
    "TestDirect",
    "TestEnd",
    "TestExchange",
    "TestFairness",
    "TestFaults",
    "TestFindOthers",
    "TestFleet",
    "TestFleetOfExits",
    "TestFollowUps",
    "TestFollowUpsOfChains",
    "TestForget",
    "TestFrontiersTime",
    "TestGateway",
    "TestGone",
    "TestInFlight",
    "TestInbox",
    "TestLanes",
    "TestLatency",
    "TestLeading",
    "TestLease",
    "TestLentToTheDead",
    "TestLosses",
    "TestLossesInLanes",
    "TestManyFollowUps",
    "TestManyLeases",
    "TestManyPriorities",
    "TestMaxPages",
    "TestNotes",
    "TestNothingElseWaits",
    "TestNothingIsLeftBehind",
    "TestOrder",
    "TestPause",
    "TestPlainAndShared",
    "TestPools",
    "TestPurgeDead",
    "TestPushback",
    "TestQueries",
    "TestRace",
    "TestRate",
    "TestReclaim",
    "TestRelease",
    "TestRemember",
    "TestRenew",
    "TestRetryDead",
    "TestRobots",
    "TestRotation",
    "TestShares",
    "TestSiteWideBlocks",
    "TestSlots",
    "TestStale",
    "TestStaleByExits",
    "TestStart",
    "TestStarving",
    "TestTasksThatWereBlocked",
    "TestThreeClocks",
    "TestTiers",
    "TestTries",
    "TestTwoCrawls",
    "TestUnavailable",
    "TestUnknown",
    "TestUnreached",
    "TestUnshared",
    "TestVerdicts",
    "TestWait",
    "TestWhatAWorkerAsksFor",
    "TestWithoutPools",
    "TestWorkers",
]
