"""`python -m nextstat.pyhf`: verbs of pyhf's command tree."""

import sys

from ._cli import main

if __name__ == "__main__":
    sys.exit(main())
