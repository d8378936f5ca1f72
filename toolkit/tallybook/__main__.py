"""The command ``tallybook``, also as ``python -m tallybook``: Ctrl-C ends it with one line and 130.

What loads before ``main`` begins would show a traceback. So nothing is loaded at the head of this
module, and next to nothing by ``tallybook`` itself.
"""

import os
import sys

_INTERRUPTED = 130
_LINE = "tallybook: interrupted\n"


def main() -> int:
    """Run the command that the arguments of this process name; returns its exit code."""
    try:
        return _run()
    except KeyboardInterrupt:
        sys.stderr.write(_LINE)
        return _INTERRUPTED


def _run() -> int:
    import signal

    # While modules load, and when all is said, there is nothing to finish. An exception would: a
    # library may swallow it, crash half loaded, or be where Python can raise none.
    before = signal.getsignal(signal.SIGINT)
    is_heard = before is signal.default_int_handler  # what is begun in the background hears none
    at_once = _end if is_heard else before
    signal.signal(signal.SIGINT, at_once)
    from tallybook.cli.main import main as command

    try:
        signal.signal(signal.SIGINT, before)
        return command()
    finally:
        signal.signal(signal.SIGINT, at_once)


def _end(*_: object) -> None:
    os.write(2, _LINE.encode())
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
