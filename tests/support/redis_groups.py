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
    """A cluster of three masters, each with `replicas` replicas. A context manager."""

    def __init__(
        self, folder: Path, replicas: int = 0, binary: Path | str = "redis-server"
    ) -> None:
        self._replicas = replicas
        self._stack = ExitStack()
        self.servers = [
            RedisServer(folder / f"node{number}", *CLUSTER_OPTIONS, binary=binary)
            for number in range(MASTERS * (1 + replicas))
        ]
        """All nodes. At the beginning, the first three are the masters."""

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
        """The cluster's address, as users write it."""
        return f"redis+cluster://{_addresses(self.servers[:MASTERS])}"

    def masters(self) -> list[RedisServer]:
        """The running servers that are masters now."""
        running = [server for server in self.servers if server.is_running()]
        return [server for server in running if _info(server)["role"] == "master"]

    def flush(self) -> None:
        """Delete all keys."""
        for server in self.masters():
            server.flush()

    def wait_until_ready(self) -> None:
        """Wait until every running server sees all slots served, and replicas are in sync.

        This is for use after a start; the cluster takes a while to notice the death of a server.
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
    """A master and a replica, both with AOF, and three sentinels that watch them. A context
    manager."""

    def __init__(self, folder: Path) -> None:
        self._stack = ExitStack()
        self._lost_port = 0
        self.servers = [
            RedisServer(folder / f"server{number}", "--appendonly", "yes") for number in range(2)
        ]
        """Both servers. At the beginning, the first is the master."""
        self.sentinels = [
            RedisServer(folder / f"sentinel{number}", "--sentinel") for number in range(SENTINELS)
        ]

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for server in self.servers:
                stack.enter_context(server)
            self._replicate()
            # A sentinel checks the servers when it first sees them, and then every ten seconds. It
            # starts last, so that all is well at the first check.
            for sentinel in self.sentinels:
                stack.enter_context(sentinel)
            self._watch()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def url(self) -> str:
        """The address with all sentinels, as users write it."""
        return f"redis+sentinel://{_addresses(self.sentinels)}/{MASTER_NAME}"

    def master_port(self) -> int:
        """The master's port, according to the first sentinel."""
        return _master_port(self.sentinels[0])

    def master(self) -> RedisServer:
        """The master, according to the first sentinel."""
        port = self.master_port()
        return next(server for server in self.servers if server.port == port)

    def kill_master(self) -> RedisServer:
        """Kill the master with SIGKILL. It can be started again later."""
        master = self.master()
        master.kill()
        self._lost_port = master.port
        return master

    def wait_for_new_master(self) -> RedisServer:
        """Wait until all sentinels have a new master instead of the killed one, and the new one was
        promoted."""
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
    """Whether a replica is in sync with its master. True for a master."""
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
    """Whether a sentinel knows the others, and a replica that it could promote."""
    with sentinel.client() as client:
        master = client.execute_command("SENTINEL MASTER", MASTER_NAME)
        replicas = client.execute_command("SENTINEL SLAVES", MASTER_NAME)
    links = [replica["master-link-status"] for replica in replicas if replica["flags"] == "slave"]
    return int(master["num-other-sentinels"]) == SENTINELS - 1 and links == ["ok"]
