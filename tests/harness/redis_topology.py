"""Several Redis servers as a Cluster, or watched by Sentinels, started with the program of `redis_server`."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from random import randrange

import redis

from tests.harness.postgres import free_port, is_free
from tests.harness.redis_server import RedisNotStartedError, RedisServer, redis_program
from tests.harness.waiting import wait_until

SLOTS = 16_384
BUS = 10_000
"""Offset of the port at which the nodes of a Cluster communicate."""
_PORTS = range(20_000, 22_700)
"""These and the ports of the bus are below the ports of outgoing connections, which could otherwise take them at any
time."""


def _cluster_node(folder: Path, *options: str) -> RedisServer:
    start = randrange(len(_PORTS))
    for port in (*_PORTS[start:], *_PORTS[:start]):
        if is_free(port) and is_free(port + BUS):
            with contextlib.suppress(RedisNotStartedError):
                return RedisServer(folder, *options, port=port)
    raise AssertionError("no port is free for a node of a Cluster")


class RedisClusterServers:
    """Three masters that share the slots."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "2000", *arguments)
        self.nodes = [_cluster_node(folder / str(number), *options) for number in range(3)]
        clients = [node.client() for node in self.nodes]
        for number, client in enumerate(clients):
            first, end = (SLOTS * place // len(clients) for place in (number, number + 1))
            client.cluster("ADDSLOTS", *range(first, end))
        for node in self.nodes[1:]:
            clients[0].cluster("MEET", "127.0.0.1", node.port)
        wait_until(lambda: all(_is_whole(client) for client in clients), "the Cluster is whole", 30)
        for client in clients:
            client.close()

    @property
    def places(self) -> str:
        return ",".join(node.place for node in self.nodes)

    def keys(self) -> list[int]:
        """Return the number of keys of each node."""
        counts = []
        for node in self.nodes:
            with node.client() as client:
                counts.append(int(client.dbsize()))
        return counts

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()


def _is_whole(client: redis.Redis) -> bool:
    reply = client.cluster("INFO")
    text = reply.decode() if isinstance(reply, bytes) else str(reply)
    return ("cluster_state:ok" in text or "'cluster_state': 'ok'" in text) and (
        "cluster_known_nodes:3" in text or "'cluster_known_nodes': '3'" in text
    )


class SentinelServers:
    """A master with a replica, and three Sentinels with a quorum of two."""

    SERVICE = "kept"

    def __init__(self, folder: Path) -> None:
        self.master = RedisServer(folder / "master")
        self.replica = RedisServer(folder / "replica", "--replicaof", "127.0.0.1", str(self.master.port))
        self.ports = [free_port() for _ in range(3)]
        self._processes = [self._watch(folder / f"sentinel{number}", port) for number, port in enumerate(self.ports)]
        wait_until(lambda: all(self._knows_all(port) for port in self.ports), "the Sentinels know each other", 30)

    def _watch(self, folder: Path, port: int) -> subprocess.Popen[bytes]:
        folder.mkdir(parents=True)
        file = folder / "sentinel.conf"
        file.write_text(
            f"port {port}\nbind 127.0.0.1\ndir {folder}\n"
            f"sentinel monitor {self.SERVICE} 127.0.0.1 {self.master.port} 2\n"
            f"sentinel down-after-milliseconds {self.SERVICE} 500\n"
            f"sentinel failover-timeout {self.SERVICE} 3000\n"
        )
        program = redis_program()
        assert program is not None
        command = [program, str(file), "--sentinel"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _state(self, port: int) -> dict[str, object]:
        try:
            with redis.Redis(port=port) as client:
                return dict(client.sentinel_master(self.SERVICE))
        except (redis.ConnectionError, redis.ResponseError):
            return {}

    def _knows_all(self, port: int) -> bool:
        state = self._state(port)
        return state.get("num-slaves") == 1 and state.get("num-other-sentinels") == 2

    @property
    def places(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def master_port(self) -> object:
        """The port of the master according to the first Sentinel."""
        return self._state(self.ports[0]).get("port")

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
        self.replica.stop()
        self.master.stop()
