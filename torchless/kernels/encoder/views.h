// Where the elements of strided tensors are.
//
// A launch has its views in a row of words: the sizes of the axes that its tensors share, then, for
// each tensor, the distances between neighbours along each axis. Distances are modulo 2^32, so that
// negative ones wrap.

// The place of element `index`, the last axis running fastest, from the tensor's first element.
FN uint place_of(GLOBAL const uint* sizes, uint n_axes, uint tensor, uint index) {
    GLOBAL const uint* distances = sizes + (1u + tensor) * n_axes;
    uint place = 0u;
    for (uint axis = n_axes; axis > 0u; --axis) {
        const uint size = sizes[axis - 1u];
        place += index % size * distances[axis - 1u];
        index /= size;
    }
    return place;
}

// A whole number from its bits.
FN int int_of_bits(uint bits) { return bits < 0x80000000u ? (int)bits : -(int)(0xffffffffu - bits) - 1; }

// Which of `size` slices is named, by an index that may count from the end. An index out of range
// is taken for another one.
FN uint slice_of(int named, uint size) {
    const uint from_start = named < 0 ? uint(named) + size : uint(named);
    return MIN(from_start, size - 1u);
}

// The place of element `i` of what is gathered: (lines, indices, slice).
FN uint gathered_place(CONSTANT GatherLayout* layout, GLOBAL const uint* views, GLOBAL const int* indices, uint i) {
    const uint line = i / (layout->n_indices * layout->slice_len), which = i / layout->slice_len % layout->n_indices;
    const int named = indices[layout->indices + place_of(views + layout->index_view, layout->index_axes, 0u, which)];
    return layout->values + place_of(views + layout->line_view, layout->line_axes, 0u, line) +
           slice_of(named, layout->size) * layout->distance +
           place_of(views + layout->slice_view, layout->slice_axes, 0u, i % layout->slice_len);
}

// The place of element `i` of those that indices name along an axis, an index for each element.
FN uint picked_place(CONSTANT PickLayout* layout, GLOBAL const uint* views, GLOBAL const int* indices, uint i) {
    const int named = indices[layout->indices + place_of(views + layout->view, layout->n_axes, 0u, i)];
    return layout->values + place_of(views + layout->view, layout->n_axes, 1u, i) + slice_of(named, layout->size) * layout->distance;
}

// The place of element `i` of the blocks that tuples of indices name.
FN uint pointed_place(CONSTANT PointsLayout* layout, GLOBAL const uint* views, GLOBAL const int* indices, uint i) {
    const uint tuple = layout->indices + place_of(views + layout->view, layout->n_axes, 0u, i / layout->inner);
    GLOBAL const uint* sizes = views + layout->axes;
    uint place = layout->values + i % layout->inner;
    for (uint axis = 0u; axis < layout->width; ++axis) {
        const int named = indices[tuple + axis * layout->right];
        place += slice_of(named, sizes[axis]) * sizes[layout->width + axis];
    }
    return place;
}

// Whether element `i` of matrices is on the side of the diagonal that is kept.
FN bool is_in_triangle(CONSTANT TriangleLayout* layout, uint i) {
    const uint at = i / layout->n_each, column = at % layout->columns, row = at / layout->columns % layout->rows;
    const int right = (int)column - (int)row, diagonal = int_of_bits(layout->diagonal);
    return layout->is_upper != 0u ? right >= diagonal : right <= diagonal;
}

// The place of a step of a running sum along a line of the result.
FN uint running_place(CONSTANT RunningLayout* layout, uint line, uint step) {
    const uint along = layout->is_reversed != 0u ? layout->length - 1u - step : step;
    return (line / layout->inner * layout->length + along) * layout->inner + line % layout->inner;
}
