"""`python -m bench`."""

import subprocess
import sys

from bench.run import main

try:
    sys.exit(main())
except subprocess.CalledProcessError as error:
    sys.exit(f"{' '.join(map(str, error.cmd))} ended with {error.returncode}")
