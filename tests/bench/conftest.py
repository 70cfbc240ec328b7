"""The benchmark is not installed: its tests import it from the top of the tree."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
