"""Results of procedures: frozen containers with named fields.

Each module lists in `__all__` what it adds.
"""

from . import adaptive_toys, base, curves, data_sets, documents, exclusion, fits, pois, scanner, search, simplify, tests, toys
from .adaptive_toys import *
from .base import *
from .base import warn_of as warn_of
from .curves import *
from .data_sets import *
from .documents import *
from .exclusion import *
from .fits import *
from .frozen import Poi as Poi
from .frozen import Record as Record
from .pois import *
from .scanner import *
from .search import *
from .simplify import *
from .tests import *
from .toys import *

__all__: list[str] = []
__all__ += adaptive_toys.__all__
__all__ += base.__all__
__all__ += curves.__all__
__all__ += data_sets.__all__
__all__ += documents.__all__
__all__ += exclusion.__all__
__all__ += fits.__all__
__all__ += pois.__all__
__all__ += scanner.__all__
__all__ += search.__all__
__all__ += simplify.__all__
__all__ += tests.__all__
__all__ += toys.__all__
