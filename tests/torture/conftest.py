"""The storms of the fault tests and the lives of the machine, at full length."""

from __future__ import annotations

import sys
from pathlib import Path

for name in ("faults", "core", "machine", "recover"):
    sys.path.insert(0, str(Path(__file__).parent.parent / name))
