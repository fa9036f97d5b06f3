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

// The place of element `i` of what is gathered: (lines, indices, slice).
FN uint gathered_place(CONSTANT GatherLayout* layout, GLOBAL const uint* views, GLOBAL const int* indices, uint i) {
    const uint line = i / (layout->n_indices * layout->slice_len), which = i / layout->slice_len % layout->n_indices;
    const int named = indices[layout->indices + place_of(views + layout->index_view, layout->index_axes, 0u, which)];
    const uint from_start = named < 0 ? uint(named) + layout->size : uint(named);
    return layout->values + place_of(views + layout->line_view, layout->line_axes, 0u, line) +
           MIN(from_start, layout->size - 1u) * layout->distance +
           place_of(views + layout->slice_view, layout->slice_axes, 0u, i % layout->slice_len);
}
