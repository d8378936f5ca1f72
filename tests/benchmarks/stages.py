"""One measurement in a process of its own: ``python -m tests.benchmarks.stages ORDER``.

ORDER is JSON: name ("ours.enqueue"), jobs, durability, folder, and what the stage takes besides.
Prints one number: jobs a second, seconds or bytes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

Stage = Callable[..., float]
PAYLOAD = {"id": "0123456789", "words": "x" * 183}
assert len(json.dumps(PAYLOAD, separators=(",", ":"))) == 213


def main() -> int:
    """Run the stage that was ordered."""
    order: dict[str, Any] = json.loads(sys.argv[1])
    module, _, name = order.pop("name").partition(".")
    run: Stage = getattr(import_module(f"tests.benchmarks.{module}"), name)
    order["folder"] = Path(order["folder"])
    print(run(**order))
    return 0


if __name__ == "__main__":
    sys.exit(main())
