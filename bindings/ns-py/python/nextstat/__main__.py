"""The command as the wheel installs it: that of the engine, with the verbs that are written in
Python.
"""

import importlib
import sys

from ._installed import warn_if_mixed

#: Verbs that are written in Python, and the modules whose `main(arguments, program)` runs them. The
#: engine's command has the same names and passes them on to this module.
VERBS = {
    "build": "nextstat.build._command",
    "hepdata": "nextstat.hepdata._command",
    "plot": "nextstat._plot_command",
    "xml2json": "nextstat.pyhf._cli",
    "contrib": "nextstat.pyhf._cli",
}


def main() -> int:
    """Runs the command with the arguments of this process; returns its exit code."""
    # `nextstat/__init__.py` may be the other distribution's.
    warn_if_mixed()
    if sys.argv[1:2] and sys.argv[1] in VERBS:
        return importlib.import_module(VERBS[sys.argv[1]]).main(sys.argv[1:], "nextstat")
    from ._command import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
