"""A pytest plugin under which `import pyhf` means `import nextstat.pyhf`, for the code under test
and for what it imports.
"""

from nextstat.pyhf import alias

alias.install()
