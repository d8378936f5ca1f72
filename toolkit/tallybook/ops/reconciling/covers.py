"""Up to where an export goes: a version, a place in the log, or a time of the cloud's clock.

A version or a place says for certain which change is not in it. A time does so only as far as two
clocks agree and a delivery is instant: so it is moved back by the measured skew and lag.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from tallybook.errors import BadInput
from tallybook.ops import windows
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.wording import counted

Kind = Literal["version", "place", "time"]
_CLOCKS_APART = timedelta(minutes=10)
_UNMEASURED = ("how far the clock of the cloud is from this one was not measured: no cache write "
               "has a last_modified")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cover:
    """Up to where an export goes. ``text`` as it was given; ``order`` grows with what it covers.

    Changes above ``version``, behind ``position`` or after ``until`` are not in it; one of the
    three is set. ``told`` says in a sentence each what that rests on.
    """

    kind: Kind
    text: str
    order: float
    version: int | None = None
    position: int | None = None
    until: datetime | None = None
    told: tuple[str, ...] = ()

    def bounds(self) -> dict[str, Any]:
        """The parameters of the statements that ask for what came after."""
        return {
            "cover_version": self.version,
            "cover_position": self.position,
            "cover_at": self.until,
        }


NOTHING = {"cover_version": None, "cover_position": None, "cover_at": None}


def cover(warehouse: Warehouse, given: str) -> Cover:
    """What ``given`` says: a whole number is a version, ``writer:seq`` a place in the log (as a
    token that the cloud hands back), anything else a time (ISO 8601; without an offset UTC).

    Raises BadInput for none of these, for a place that this log does not have and for a time to
    come.
    """
    if re.fullmatch(r"[0-9]{1,15}", given):
        version = int(given)
        told = f"the export covers versions up to {version}"
        return Cover("version", given, version, version=version, told=(told,))
    if re.fullmatch(r"[0-9a-f]{8,32}:[0-9]{1,15}", given):
        return _place(warehouse, given)
    return _time(warehouse, given)


def _place(warehouse: Warehouse, given: str) -> Cover:
    writer, _, seq = given.partition(":")
    asked = {"writer": writer, "seq": int(seq)}
    found = warehouse.frame("position_of", asked)
    if found.is_empty():
        raise BadInput(
            f"--covers {given}: this log has no event {seq} of writer {writer}; is the export of "
            "another book? see 'tallybook log verify'"
        )
    position = int(found.row(0)[0])
    told = f"the export covers the log up to {given}"
    return Cover("place", given, position, position=position, told=(told,))


def _time(warehouse: Warehouse, given: str) -> Cover:
    try:
        moment = windows.instant(given, windows.named_zone("UTC"))
    except BadInput:
        moment = None
    if moment is None:
        raise BadInput(
            f"--covers {given!r} is no version (7), no place in the log (writer:seq) and no time "
            "(2026-11-29T22:00:00Z)"
        )
    measured = warehouse.frame("delivery_lag").row(0, named=True)
    _require_past(given, moment, measured["skew_s"] or 0.0)
    skew_s, lag_s = measured["skew_s"] or 0.0, measured["lag_s"] or 0.0
    until = moment - timedelta(seconds=skew_s + lag_s)
    return Cover(
        "time", given, moment.timestamp(), until=until, told=_measured(moment, until, measured)
    )


def _require_past(given: str, moment: datetime, skew_s: float) -> None:
    """Raise BadInput for a time to come: it would hide what is in flight, and every true export
    after it would be older."""
    latest = datetime.now(UTC) + timedelta(seconds=abs(skew_s)) + _CLOCKS_APART
    if moment > latest:
        raise BadInput(f"--covers {given} is still to come, and no export covers that; is the year "
                       "or the zone another one?")  # fmt: skip


def _measured(moment: datetime, until: datetime, measured: dict[str, Any]) -> tuple[str, ...]:
    if measured["stamps"]:
        skew = (f"the clock of the cloud is {measured['skew_s']:+.3f} s from this one (median of "
                f"{counted(measured['stamps'], 'stamp')})")  # fmt: skip
    else:
        skew = _UNMEASURED
    lag = "no delivery was measured"
    if measured["deliveries"]:
        lag = (f"deliveries take up to {measured['lag_s']:.3f} s (p99 of "
               f"{counted(measured['deliveries'], 'job')})")  # fmt: skip
    said = (
        f"the export covers the time up to {_text(moment)}: what changed here after "
        f"{_text(until)} may not be in it"
    )
    return said, skew, lag


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
