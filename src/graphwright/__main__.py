"""`python -m graphwright` does what the command `graphwright` does."""

from __future__ import annotations

import sys

from graphwright.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
