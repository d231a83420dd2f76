"""Redis servers that work together: a cluster, and a master with a replica and sentinels."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from support.redis_servers import RedisServer
from support.until import until_now

MASTERS = 3
SLOTS = 16384

CLUSTER_OPTIONS = (
    *("--cluster-enabled", "yes", "--cluster-node-timeout", "2000"),
    *("--cluster-announce-ip", "127.0.0.1"),
)

MASTER_NAME = "mymaster"
SENTINELS = 3
QUORUM = 2
SENTINEL_SETTINGS = {"down-after-milliseconds": "1000", "failover-timeout": "5000"}


class RedisCluster:
    """A cluster of three masters, each with that many replicas. A context."""

    def __init__(
        self, folder: Path, replicas: int = 0, binary: Path | str = "redis-server"
    ) -> None:
        self._replicas = replicas
        self._stack = ExitStack()
        self.servers = [
            RedisServer(folder / f"node{number}", *CLUSTER_OPTIONS, binary=binary)
            for number in range(MASTERS * (1 + replicas))
        ]
        """The first three are the masters at the beginning."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for server in self.servers:
                stack.enter_context(server)
            self._join()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def url(self) -> str:
        """Where it is, as users write it."""
        return f"redis+cluster://{_addresses(self.servers[:MASTERS])}"

    def masters(self) -> list[RedisServer]:
        """The servers that run and are masters now."""
        running = [server for server in self.servers if server.is_running()]
        return [server for server in running if _info(server)["role"] == "master"]

    def flush(self) -> None:
        """Delete all keys."""
        for server in self.masters():
            server.flush()

    def wait_until_ready(self) -> None:
        """Wait until every server that runs sees all slots served, and replicas are in sync.

        It takes the cluster a while to notice a death: this is for after a start.
        """
        running = [server for server in self.servers if server.is_running()]
        until_now("the cluster", lambda: all(map(_serves_all_slots, running)))

    def _join(self) -> None:
        nodes = [f"127.0.0.1:{server.port}" for server in self.servers]
        replicas = str(self._replicas)
        self.servers[0].cli(
            "--cluster", "create", *nodes, "--cluster-replicas", replicas, "--cluster-yes"
        )
        self.wait_until_ready()


class RedisSentinel:
    """A master and a replica, both with AOF, and three sentinels that watch them. A context."""

    def __init__(self, folder: Path) -> None:
        self._stack = ExitStack()
        self._lost_port = 0
        self.servers = [
            RedisServer(folder / f"server{number}", "--appendonly", "yes") for number in range(2)
        ]
        """The first is the master at the beginning."""
        self.sentinels = [
            RedisServer(folder / f"sentinel{number}", "--sentinel") for number in range(SENTINELS)
        ]

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for server in self.servers:
                stack.enter_context(server)
            self._replicate()
            # A sentinel asks the servers on sight and then every ten seconds. So that it likes
            # what it sees at first, it comes last.
            for sentinel in self.sentinels:
                stack.enter_context(sentinel)
            self._watch()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def url(self) -> str:
        """Where it is, as users write it."""
        return f"redis+sentinel://{_addresses(self.sentinels)}/{MASTER_NAME}"

    def master_port(self) -> int:
        """The port of the master, as the first sentinel has it."""
        return _master_port(self.sentinels[0])

    def master(self) -> RedisServer:
        """The server that the first sentinel has as the master."""
        port = self.master_port()
        return next(server for server in self.servers if server.port == port)

    def kill_master(self) -> RedisServer:
        """kill -9 of the master, which can be started again later."""
        master = self.master()
        master.kill()
        self._lost_port = master.port
        return master

    def wait_for_new_master(self) -> RedisServer:
        """Wait until all sentinels have another master than the one killed, and it knows it is."""
        until_now("a new master", lambda: self._lost_port not in map(_master_port, self.sentinels))
        master = self.master()
        until_now("the new master's promotion", lambda: _info(master)["role"] == "master")
        return master

    def _replicate(self) -> None:
        master, replica = self.servers
        replica.cli("REPLICAOF", "127.0.0.1", str(master.port))
        until_now("the replica", lambda: _is_in_sync(replica))

    def _watch(self) -> None:
        port = str(self.servers[0].port)
        for sentinel in self.sentinels:
            sentinel.cli("SENTINEL", "MONITOR", MASTER_NAME, "127.0.0.1", port, str(QUORUM))
            for name, value in SENTINEL_SETTINGS.items():
                sentinel.cli("SENTINEL", "SET", MASTER_NAME, name, value)
        until_now("the sentinels", lambda: all(map(_knows_all, self.sentinels)))


def _addresses(servers: Sequence[RedisServer]) -> str:
    return ",".join(f"127.0.0.1:{server.port}" for server in servers)


def _info(server: RedisServer) -> dict[str, object]:
    with server.client() as client:
        info: dict[str, object] = client.info("replication")
        return info


def _is_in_sync(server: RedisServer) -> bool:
    """Whether a replica has all its master has. True for a master."""
    return _info(server).get("master_link_status", "up") == "up"


def _serves_all_slots(server: RedisServer) -> bool:
    with server.client() as client:
        cluster = client.execute_command("CLUSTER INFO")
    all_served = cluster["cluster_state"] == "ok" and int(cluster["cluster_slots_ok"]) == SLOTS
    return all_served and _is_in_sync(server)


def _master_port(sentinel: RedisServer) -> int:
    with sentinel.client() as client:
        _, port = client.execute_command("SENTINEL GET-MASTER-ADDR-BY-NAME", MASTER_NAME)
        return int(port)


def _knows_all(sentinel: RedisServer) -> bool:
    """Whether a sentinel knows the others, and a replica that it would promote."""
    with sentinel.client() as client:
        master = client.execute_command("SENTINEL MASTER", MASTER_NAME)
        replicas = client.execute_command("SENTINEL SLAVES", MASTER_NAME)
    links = [replica["master-link-status"] for replica in replicas if replica["flags"] == "slave"]
    return int(master["num-other-sentinels"]) == SENTINELS - 1 and links == ["ok"]
