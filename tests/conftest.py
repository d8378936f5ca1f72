"""How tests share two cores (``make test``): a file is one worker's, so that what it makes is made
once; the tests of a few long files need nothing of each other and go to whoever is free."""

from __future__ import annotations

import pytest

SPREAD = ("test_power_cuts.py", "test_crash_points.py", "test_storms.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Name each test's group; those that share the recorded demos come first, as the longest."""
    for item in items:
        if name := group_of(item):
            item.add_marker(pytest.mark.xdist_group(name))
    items.sort(key=lambda item: group_of(item) != "demo")


def group_of(item: pytest.Item) -> str:
    """What a test has to be together with; nothing where it stands alone."""
    if "recorded" in getattr(item, "fixturenames", ()):
        return "demo"
    return "" if item.path.name in SPREAD else item.path.name
