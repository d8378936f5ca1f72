"""Turning answers into actions: the one room that may use both halves, to rebuild and repair.

``rebuild`` makes state.db anew from the log, also from a log with holes, and says what is missing.
"""

from tallybook.recover.rebuild import Rebuilt, rebuild

__all__ = ["Rebuilt", "rebuild"]
