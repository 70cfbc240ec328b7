"""Starts an installed rowcall with the demo, sends one request and stops it.

It runs with the interpreter of the tested environment and uses only the standard library: nothing of the checkout may
be needed.
"""

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request


def main(command: str) -> int:
    urls = f"--Urls=http://127.0.0.1:{free_port()}"
    service = subprocess.Popen([command, "--demo", urls], stdout=subprocess.PIPE, text=True)
    try:
        url = first_example(service)
        with urllib.request.urlopen(url, timeout=20) as answer:
            rows = json.load(answer)
        print(f"{url} answered {answer.status} with {len(rows)} rows")
    finally:
        service.send_signal(signal.SIGTERM)
        code = service.wait(60)
    print(f"stopped with exit code {code}")
    return 0 if rows and code == 0 else 1


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def first_example(service: "subprocess.Popen[str]") -> str:
    assert service.stdout is not None
    for line in service.stdout:
        print(line, end="")
        if match := re.search(r"curl '?(http://\S+?)'?(\s|$)", line):
            return match[1]
    raise SystemExit("the service ended before it listened")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
