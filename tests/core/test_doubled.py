"""JSON objects that have one name twice are known, however the text is written."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tallybook import doubled

NAMES = st.sampled_from(["a", "b", '\\"', '\\":', "\\u0022:", "\\u0061"])
GAP = st.sampled_from(["", " ", "\t", "\n"])


@st.composite
def objects(draw: st.DrawFn, depth: int = 2) -> tuple[str, bool]:
    """The text of an object, and whether a name stands twice in it or in one that it holds."""
    parts, names, is_doubled = [], [], False
    for name in draw(st.lists(NAMES, max_size=4)):
        value, inner = draw(objects(depth - 1)) if depth and draw(st.booleans()) else ("1", False)
        parts.append(f'"{name}"{draw(GAP)}:{draw(GAP)}[{value}]')
        names.append(orjson.loads(f'"{name}"'))
        is_doubled |= inner
    return "{" + ",".join(parts) + "}", is_doubled or len(set(names)) < len(names)


@settings(max_examples=150, deadline=None)
@given(objects())
@example(('{"a" :1,"b":1,"b":1}', True))
@example(('{"a\\u0022:":1,"b":1,"b":1}', True))
def test_a_name_that_stands_twice_is_found_however_it_is_written(made: tuple[str, bool]) -> None:
    text, is_doubled = made[0].encode(), made[1]
    assert bool(doubled.reason(doubled.read_again(text, orjson.loads(text)))) == is_doubled


@pytest.mark.parametrize("text", ['{"a":{"b":1},"c":"d\\":"}', "[]", "7"])
def test_a_text_that_plainly_has_each_name_once_is_not_read_again(text: str) -> None:
    assert doubled.read_again(text.encode(), orjson.loads(text)) is None
