"""The `nextstat` command, as the wheel brings it."""

import signal
import sys

from ._nextstat import command


def main() -> int:
    # The command has its own way with Ctrl-C: it stops at the next unit of work and keeps what is done.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    return command(["nextstat", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
