"""`python -m bench.profile`: profile of an endpoint or of a statement.

python -m bench.profile http://127.0.0.1:8080/api/orders            times of a running service
python -m bench.profile --sql "select …" --connection "dbname=x"    times of a statement and of its rendering
"""

from __future__ import annotations

import argparse
import sys

from bench.profile.endpoint import profile_endpoint
from bench.profile.statement import profile_statement


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("url", nargs="?", help="endpoint of a service that runs with --HttpServer:ServerTiming=true")
    parser.add_argument("--sql", help="statement to run and to render instead")
    parser.add_argument("--connection", default="", help="libpq connection string for --sql")
    parser.add_argument("--body", help="JSON body; the request is a POST")
    parser.add_argument("--requests", type=int, default=50)
    options = parser.parse_args(arguments)
    if (options.url is None) == (options.sql is None):
        parser.error("either a URL or --sql is needed")
    if options.sql is not None:
        lines = profile_statement(options.connection, options.sql, options.requests)
    else:
        lines = profile_endpoint(options.url, options.body, options.requests)
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
