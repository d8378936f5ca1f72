"""``python -m tallybook`` is the command ``tallybook``."""

import sys

from tallybook.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
