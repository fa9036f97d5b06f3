// Sums and maxima of rows, in the CPU's order: ROW_LANES neighbouring lanes share a row, of which
// lane l has the numbers l, l + ROW_LANES, …; halves of the lanes are added until one number is
// left. Every lane of the row gets it.

FN real sum_of_row_lanes(real value LANES_PARAM) {
    for (uint mask = ROW_LANES / 2u; mask > 0u; mask /= 2u) value += SHUFFLE_XOR(value, mask);
    return value;
}

FN real product_of_row_lanes(real value LANES_PARAM) {
    for (uint mask = ROW_LANES / 2u; mask > 0u; mask /= 2u) value *= SHUFFLE_XOR(value, mask);
    return value;
}

FN real largest_of_row_lanes(real value LANES_PARAM) {
    for (uint mask = ROW_LANES / 2u; mask > 0u; mask /= 2u) value = MAX(value, SHUFFLE_XOR(value, mask));
    return value;
}

FN real smallest_of_row_lanes(real value LANES_PARAM) {
    for (uint mask = ROW_LANES / 2u; mask > 0u; mask /= 2u) value = MIN(value, SHUFFLE_XOR(value, mask));
    return value;
}

// What the layout asks for of the row that begins at `row` in `values`.
FN real reduction_of_row(CONSTANT ReduceLayout* layout, GLOBAL const uint* inner, GLOBAL const real* values, uint row LANES_PARAM) {
    const uint operation = layout->operation, lane = LANE % ROW_LANES;
    const bool is_square = operation == REDUCE_SUM_OF_SQUARES || operation == REDUCE_NORM;
    const bool is_extreme = operation == REDUCE_MAX || operation == REDUCE_MIN;
    real value = operation == REDUCE_PRODUCT ? R(1.0) : (is_extreme ? values[row] : R(0.0));
    for (uint i = lane; i < layout->length; i += ROW_LANES) {
        const real number = values[row + place_of(inner, layout->inner_axes, 0u, i)];
        const real term = is_square ? number * number : number;
        if (operation == REDUCE_MAX) value = MAX(value, number);
        else if (operation == REDUCE_MIN) value = MIN(value, number);
        else if (operation == REDUCE_PRODUCT) value *= number;
        else value += term;
    }
    if (operation == REDUCE_MAX) return largest_of_row_lanes(value LANES_ARG);
    if (operation == REDUCE_MIN) return smallest_of_row_lanes(value LANES_ARG);
    if (operation == REDUCE_PRODUCT) return product_of_row_lanes(value LANES_ARG);
    value = sum_of_row_lanes(value LANES_ARG);
    if (operation == REDUCE_MEAN) return value / real(layout->length);
    return operation == REDUCE_NORM ? SQRT(value) : value;
}

FN Wide wide_sum_of_row_lanes(Wide value LANES_PARAM) {
    for (uint mask = ROW_LANES / 2u; mask > 0u; mask /= 2u) {
        const real high = SHUFFLE_XOR(value.high, mask), low = SHUFFLE_XOR(value.low, mask);
        value = sum_of(value, wide_of(high, low));
    }
    return value;
}
