"""The contract of the frontier port. Every backend passes it on its real server, except for tests
of capabilities that it declares not to have.

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
from contract.frontier.alike import TestLinksAlike
from contract.frontier.asking import (
    TestAddWhatIsDead,
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
from contract.frontier.doing_once import TestOnce
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
from contract.frontier.exits_served import TestPoolsThatChange, TestWhatWasServed
from contract.frontier.exits_sites import TestSiteWideBlocks, TestTiers
from contract.frontier.exits_starving import TestDirect, TestStarving
from contract.frontier.failures import TestDeadByKindAndHost, TestFailureKinds, TestLeased
from contract.frontier.finishing import TestFollowUps, TestManyFollowUps, TestStale, TestVerdicts
from contract.frontier.lane_suspects import TestSuspectsByExits, TestSuspectsWithAccounts
from contract.frontier.later import (
    TestFieldsOfALaterVersion,
    TestFormOfALaterVersion,
)
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
from contract.frontier.own_counting import TestOwnCounts
from contract.frontier.pacing import TestAuto, TestBreaker, TestLatency
from contract.frontier.politeness import TestPushback, TestRate, TestRobots, TestSlots
from contract.frontier.racing import TestRace
from contract.frontier.refusing import TestUnavailable
from contract.frontier.registering import TestInbox, TestWorkers
from contract.frontier.remembering import TestRemember
from contract.frontier.sessions_bound import TestAnotherExit
from contract.frontier.sessions_held import TestAccounts, TestHold
from contract.frontier.sessions_kept import TestAccountsOfTheDead, TestFleetOfAccounts
from contract.frontier.sessions_lanes import TestOneAccountOnly, TestSessionLanes
from contract.frontier.sessions_lent import TestIdentities, TestOneAtATime, TestWhoGoesFirst
from contract.frontier.sessions_logins import TestJars, TestSessionsThatEnd
from contract.frontier.sessions_starving import TestLoginsThatFail, TestStarvingForAccounts
from contract.frontier.sessions_through import TestThrough
from contract.frontier.sessions_turns import TestTurns
from contract.frontier.sharing import TestFleet, TestGone, TestPlainAndShared, TestShares
from contract.frontier.sharing_among import TestAmongOthers, TestNothingIsLeftBehind, TestUnshared
from contract.frontier.steering import TestCancel, TestEnd, TestForget, TestPause, TestUnknown

__all__ = [
    "TestAccounts",
    "TestAccountsOfTheDead",
    "TestAdd",
    "TestAddByState",
    "TestAddWhatIsDead",
    "TestAmongOthers",
    "TestAnotherExit",
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
    "TestDeadByKindAndHost",
    "TestDeadInLanes",
    "TestDirect",
    "TestEnd",
    "TestExchange",
    "TestFailureKinds",
    "TestFairness",
    "TestFaults",
    "TestFieldsOfALaterVersion",
    "TestFindOthers",
    "TestFleet",
    "TestFleetOfAccounts",
    "TestFleetOfExits",
    "TestFollowUps",
    "TestFollowUpsOfChains",
    "TestForget",
    "TestFormOfALaterVersion",
    "TestFrontiersTime",
    "TestGateway",
    "TestGone",
    "TestHold",
    "TestIdentities",
    "TestInFlight",
    "TestInbox",
    "TestJars",
    "TestLanes",
    "TestLatency",
    "TestLeading",
    "TestLease",
    "TestLeased",
    "TestLentToTheDead",
    "TestLinksAlike",
    "TestLoginsThatFail",
    "TestLosses",
    "TestLossesInLanes",
    "TestManyFollowUps",
    "TestManyLeases",
    "TestManyPriorities",
    "TestMaxPages",
    "TestNotes",
    "TestNothingElseWaits",
    "TestNothingIsLeftBehind",
    "TestOnce",
    "TestOneAccountOnly",
    "TestOneAtATime",
    "TestOrder",
    "TestOwnCounts",
    "TestPause",
    "TestPlainAndShared",
    "TestPools",
    "TestPoolsThatChange",
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
    "TestSessionLanes",
    "TestSessionsThatEnd",
    "TestShares",
    "TestSiteWideBlocks",
    "TestSlots",
    "TestStale",
    "TestStaleByExits",
    "TestStart",
    "TestStarving",
    "TestStarvingForAccounts",
    "TestSuspectsByExits",
    "TestSuspectsWithAccounts",
    "TestTasksThatWereBlocked",
    "TestThreeClocks",
    "TestThrough",
    "TestTiers",
    "TestTries",
    "TestTurns",
    "TestTwoCrawls",
    "TestUnavailable",
    "TestUnknown",
    "TestUnreached",
    "TestUnshared",
    "TestVerdicts",
    "TestWait",
    "TestWhatAWorkerAsksFor",
    "TestWhatWasServed",
    "TestWhoGoesFirst",
    "TestWithoutPools",
    "TestWorkers",
]
