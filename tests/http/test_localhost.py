"""`localhost` is IPv4 and IPv6 of this machine only; `*` is every interface for both."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from tests.harness.database import Database
from tests.harness.postgres import free_port
from tests.harness.service import NO_TLS, Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create function address() returns text language sql stable
  return current_setting('request.ip_address', true) || ' ' || pg_backend_pid();
comment on function address() is E'HTTP GET /address\\nuser_context';
"""
ADDRESSES = ("127.0.0.1", "::1")


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as item:
            item.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not _has_ipv6(), reason="this machine has no address ::1")


def seen_by_sql(port: int, host: str) -> str:
    shown = f"[{host}]" if ":" in host else host
    with httpx.Client(trust_env=False, verify=NO_TLS, timeout=60) as client:
        response = client.get(f"http://{shown}:{port}/address")
    assert response.status_code == 200, response.text
    return response.text.split()[0].strip('"')


def listening(service: Service) -> dict[tuple[str, int], int]:
    """Return how many sockets listen at each address, over all processes; each is counted once."""
    addresses = {
        (item.laddr.ip, item.laddr.port)
        for process in service.processes()
        for item in process.net_connections("tcp")
        if item.status == psutil.CONN_LISTEN
    }
    return {(host, port): len(_inodes(host, port)) for host, port in addresses}


def _inodes(host: str, port: int) -> set[str]:
    table = Path("/proc/net/tcp6" if ":" in host else "/proc/net/tcp").read_text("ascii").splitlines()[1:]
    rows = (line.split() for line in table)
    return {row[9] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")}


@pytest.mark.slow
@needs_ipv6
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/net")
def test_localhost_listens_on_both_loopback_addresses_only(
    own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    port, wide = free_port(), free_port()
    settings = {
        "Urls": f"http://localhost:{port};http://*:{wide}",
        "HttpServer:HandoverSocket": str(tmp_path / "handover"),
        "HttpServer:Shutdown:ConnectionCloseTime": "1 second",
        "Log:MinimalLevels:rowcall": "Debug",
    }
    first = serve_once(own_database, SQL, settings, workers=2, port=port)
    assert f"http://localhost:{port}" in first.log
    # Each worker has a socket of its own for each address.
    assert listening(first) == {("127.0.0.1", port): 2, ("::1", port): 2, ("::", wide): 2}
    for host in ADDRESSES:
        assert seen_by_sql(port, host) == seen_by_sql(wide, host) == host
    second = serve_once(own_database, "", settings, workers=2, port=port)
    assert first.process.wait(60) == 0
    assert listening(second) == {("127.0.0.1", port): 2, ("::1", port): 2, ("::", wide): 2}
    for worker in second.pids():
        process = psutil.Process(worker)
        process.kill()
        process.wait(60)
        for host in ADDRESSES:
            assert seen_by_sql(port, host) == seen_by_sql(wide, host) == host
        wait_until(lambda worker=worker: worker not in second.pids() and len(second.pids()) == 2, "it is replaced")  # type: ignore[misc]
    assert second.stop() == 0


@needs_ipv6
def test_port_in_use_on_one_loopback_address_is_logged(own_database: Database, tmp_path: Path) -> None:
    """Otherwise, a client would reach one of two services, depending on its resolver."""
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as other:
        other.bind(("::1", 0))
        other.listen()
        port = other.getsockname()[1]
        settings = {"ConnectionStrings:Default": own_database.conninfo, "Urls": f"http://localhost:{port}"}
        service = Service(tmp_path / "refused", settings, port)
        assert service.process.wait(60) == 1
        assert f"cannot listen on http://localhost:{port} (::1): Address already in use" in service.log


WITHOUT_IPV6 = """
import fcntl, json, socket, struct
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    fcntl.ioctl(one, 0x8914, struct.pack("16sH14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
with open("/proc/sys/net/ipv6/conf/lo/disable_ipv6", "w") as file:
    file.write("1")
from rowcall.service.sockets.listeners import Address, ListenerPlan, Listeners
listeners = Listeners([ListenerPlan(Address.parse("http://localhost:0"))], 2)
print(json.dumps([one.getsockname()[0] for one in listeners.sockets]))
"""


def test_a_machine_without_ipv6_listens_on_ipv4() -> None:
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("there is no unshare (util-linux), which gives a process a network of its own")
    done = subprocess.run(
        [unshare, "-rn", sys.executable, "-c", WITHOUT_IPV6], capture_output=True, text=True, check=False
    )
    if done.returncode and ("unshare" in done.stderr or "disable_ipv6" in done.stderr):
        pytest.skip(f"no network without IPv6 can be made here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["127.0.0.1"] * 2
