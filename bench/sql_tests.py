"""`python -m bench.sql_tests`: duration of `rowcall --test` for many small tests of the demo in seconds."""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path

from bench.postgres import temporary_server
from rowcall.service.embedded.demo import SETTINGS

TEST = """/*
GET /couriers/{courier}
*/
select 'the courier is there', status = 200 from _response;
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=int, default=1000)
    arguments = parser.parse_args()
    schema = files("rowcall.service.embedded.demo").joinpath("schema.sql").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name, temporary_server("auto") as server:
        folder = Path(name)
        server.psql("-c", "create database bench", database="postgres")
        server.psql(stdin=f"begin; {schema}; commit;")
        for number in range(arguments.tests):
            (folder / f"{number}.test.sql").write_text(TEST.format(courier=number % 10 + 1))
        own = {"TestRunner:FilePattern": f"{folder}/*.test.sql", "Service:SqlFileSource:FilePattern": ""}
        settings = {**dict(SETTINGS), "ConnectionStrings:Default": server.conninfo(), **own}
        command = [sys.executable, "-m", "rowcall.service.cli", "--test", *(f"--{k}={v}" for k, v in settings.items())]
        began = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})
        seconds = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    cpu = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(done.stdout.strip().splitlines()[-1])
    print(
        f"{arguments.tests} tests in {seconds:.2f} s ({cpu.ru_utime + cpu.ru_stime:.2f} s of CPU, all child processes)"
    )


if __name__ == "__main__":
    main()
