"""Checksums of the records of a file of toys, as the command keeps them in the document beside it.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ._nextstat import ToyError

if TYPE_CHECKING:
    from collections.abc import Iterator

ALGORITHM = "crc32"
# Records of the smallest block, and blocks of a file at most.
_SMALLEST = 256
_MOST_BLOCKS = 4096


def of(records: np.ndarray) -> dict[str, Any]:
    """Returns the checksums of all `records` of a file."""
    n_blocks = -(-len(records) // _SMALLEST)
    share = max(1, -(-n_blocks // _MOST_BLOCKS))
    each = _SMALLEST << (share - 1).bit_length()
    values = [f"{value:08x}" for _, _, value in _blocks(records, each)]
    return {"algorithm": ALGORITHM, "records_each": each, "n_records": len(records), "values": values}


def require_sound(path: str, records: np.ndarray, checksums: dict[str, Any]) -> None:
    """Refuses records that are not those that were written."""
    values, n_covered = checksums["values"], checksums["n_records"]
    for block, (first, last, value) in enumerate(_blocks(records, checksums["records_each"])):
        if last > n_covered or block >= len(values) or int(values[block], 16) != value:
            raise ToyError(f"`{path}` is damaged: toys {first + 1} to {last} of it do not match their checksum")


def _blocks(records: np.ndarray, each: int) -> Iterator[tuple[int, int, int]]:
    """Returns, for each block of records, its first one, the one after its last one, and its
    checksum."""
    content = records.view(np.uint8)
    size = records.dtype.itemsize
    for first in range(0, len(records), each):
        last = min(first + each, len(records))
        yield first, last, zlib.crc32(content[first * size : last * size])
