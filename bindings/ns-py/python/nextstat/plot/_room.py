"""Where axes are free: what is drawn on them, as paths in pixels, whether a box overlaps it, and
how much longer the y axis must be for boxes at its top.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy
from matplotlib.path import Path
from matplotlib.transforms import Bbox

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

#: The `gid` of shaded areas that may be written on.
SHADING = "nextstat shading"

# Points between what is drawn and what is written.
_GAP = 4.0


class Obstacle(NamedTuple):
    """What is drawn somewhere: a path in pixels, and whether its inside is filled."""

    path: Path
    is_filled: bool
    #: Whether its height is in data coordinates; vertical lines have none.
    has_height: bool = True


def extent(artist: Artist) -> Bbox:
    """Returns the box of an artist in pixels, with a margin."""
    return artist.get_window_extent().padded(_GAP * artist.figure.dpi / 72)


def overlaps(box: Bbox, others: Iterable[Bbox]) -> bool:
    """Returns whether the box overlaps another one."""
    return any(box.overlaps(other) for other in others)


def is_free(box: Bbox, drawn: Iterable[Obstacle]) -> bool:
    """Returns whether nothing is drawn in the box."""
    return not any(obstacle.path.intersects_bbox(box, obstacle.is_filled) for obstacle in drawn)


def obstacles(ax: Axes) -> list[Obstacle]:
    """Returns what is drawn on the axes, and texts, without shaded areas."""
    found = [part for line in ax.lines if _counts(line) for part in _of_line(ax, line)]
    for patch in ax.patches:
        if _counts(patch):
            path = patch.get_transform().transform_path(patch.get_path())
            found.append(Obstacle(path, patch.get_fill(), _has_height(ax, patch.get_transform())))
    found += [part for collection in ax.collections if _counts(collection) for part in _of_collection(ax, collection)]
    texts = (text for text in ax.texts if text.get_visible() and text.get_text())
    return found + [Obstacle(_rectangle(text.get_window_extent()), True) for text in texts]


def _counts(artist: Artist) -> bool:
    return artist.get_visible() and artist.get_gid() != SHADING


def _has_height(ax, transform) -> bool:
    """Returns whether y is in data coordinates."""
    return transform.contains_branch_seperately(ax.transData)[1]


def _of_line(ax, line) -> Iterator[Obstacle]:
    transform = line.get_transform()
    if line.get_linestyle() not in ("None", ""):
        yield Obstacle(transform.transform_path(line.get_path()), False, _has_height(ax, transform))
    if line.get_marker() not in ("None", "", None):
        yield from _markers(line, transform.transform(line.get_xydata()), line.get_markersize())


def _of_collection(ax, collection) -> Iterator[Obstacle]:
    transform, offsets = collection.get_transform(), collection.get_offset_transform()
    if _has_height(ax, offsets):
        # Markers: paths in points, at offsets in data coordinates.
        sizes = getattr(collection, "get_sizes", list)()
        size = float(numpy.sqrt(numpy.max(sizes, initial=0.0)))
        yield from _markers(collection, offsets.transform(numpy.ma.filled(collection.get_offsets(), numpy.nan)), size)
    elif _has_height(ax, transform):
        is_filled = len(collection.get_facecolor()) > 0 or collection.get_hatch() is not None
        yield from (Obstacle(transform.transform_path(path), is_filled) for path in collection.get_paths() if len(path.vertices))


def _markers(artist, places, size) -> Iterator[Obstacle]:
    """Returns squares of `size` points at `places` (N, 2)."""
    half = 0.5 * size * artist.figure.dpi / 72
    for x, y in places[numpy.isfinite(places).all(axis=1)]:
        yield Obstacle(_rectangle(Bbox.from_extents(x - half, y - half, x + half, y + half)), True)


def _rectangle(box: Bbox) -> Path:
    corners = [(box.x0, box.y0), (box.x1, box.y0), (box.x1, box.y1), (box.x0, box.y1), (box.x0, box.y0)]
    return Path(corners)


def stretch(ax: Axes, boxes: Iterable[Bbox], drawn: Iterable[Obstacle]) -> float:
    """Returns by how much the y axis must be longer, upwards, for what is drawn to be below all
    boxes; infinity if a box is at the bottom.
    """
    frame, paths, needed = ax.get_window_extent(), [obstacle.path for obstacle in drawn if obstacle.has_height], 1.0
    for box in boxes:
        top = max((_top(path, box) for path in paths), default=-numpy.inf) - frame.y0
        room = box.y0 - frame.y0
        if top > max(room, 0.0):
            needed = max(needed, top / room if room > 0.0 else numpy.inf)
    return needed


def _top(path: Path, box: Bbox) -> float:
    """Returns the largest y of the path between the left and the right end of the box."""
    highest = -numpy.inf
    for points in path.to_polygons(closed_only=False):
        if len(points) == 1:
            points = numpy.repeat(points, 2, axis=0)
        (x, y), (next_x, next_y) = points[:-1].T, points[1:].T
        left, right = numpy.maximum(numpy.minimum(x, next_x), box.x0), numpy.minimum(numpy.maximum(x, next_x), box.x1)
        inside = left <= right
        width = numpy.where(next_x == x, 1.0, next_x - x)
        for end in (left, right):
            # Of a vertical piece, the higher end.
            height = numpy.where(next_x == x, numpy.maximum(y, next_y), y + (next_y - y) * (end - x) / width)
            highest = max(highest, numpy.max(height[inside], initial=-numpy.inf))
    return float(highest)


def lengthen(ax: Axes, factor: float) -> None:
    """Makes the y axis longer by a factor, upwards, on its own scale."""
    if factor <= 1.0:
        return
    scale = ax.yaxis.get_transform()
    bottom, top = scale.transform(numpy.array(ax.get_ylim()))
    ax.set_ylim(top=float(scale.inverted().transform(bottom + factor * (top - bottom))))
