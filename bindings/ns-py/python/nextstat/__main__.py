"""The command as the wheel installs it: that of the engine, with the verbs of the pyhf shim."""

import sys

from ._installed import warn_if_mixed

# Verbs that need ROOT files or the network.
_OF_PYHF = ("xml2json", "json2xml", "contrib")


def main() -> int:
    """Runs the command with the arguments of this process; returns its exit code."""
    # `nextstat/__init__.py` may be the other distribution's.
    warn_if_mixed()
    if sys.argv[1:2] and sys.argv[1] in _OF_PYHF:
        from .pyhf._cli import main as verb

        return verb(sys.argv[1:], "nextstat")
    from ._command import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
