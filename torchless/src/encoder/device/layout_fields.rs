// The fields of the structs that the encoders' kernels are launched with and the numbers that they
// share with the host, for `layout.rs`, which uses the macros of `device`, and for the build
// script, which has those of ns-device-build.
//
// After a change here: `UPDATE_LAYOUT=1 cargo build -p torchless` writes `kernels/encoder/layout.h`
// anew; a build with an old one says so.

constants! {
    /// Elements that are treated one by one, of up to three tensors of one shape.
    ElementsLayout {
        /// how many there are
        n: uint,
        /// axes of the shape
        n_axes: uint,
        /// where its views begin
        view: uint,
        /// what is done
        operation: uint,
        /// the first element of a
        a: uint,
        /// that of b
        b: uint,
        /// that of c
        c: uint,
        /// that of out, where it is strided
        out: uint,
    }
}

constants! {
    /// One number, many times.
    FillLayout {
        /// how many times
        n: uint,
        /// the number
        number: real,
        /// the bits of the whole number
        integer: uint,
    }
}

constants! {
    /// Indices that must be in range.
    IndicesLayout {
        /// how many there are
        n: uint,
        /// axes of their shape
        n_axes: uint,
        /// where its view begins
        view: uint,
        /// the first one
        indices: uint,
        /// slices that there are
        size: uint,
        /// where the answer goes
        fault: uint,
    }
}

constants! {
    /// Slices of lines that indices name.
    GatherLayout {
        /// elements of the result
        n: uint,
        /// elements of a slice
        slice_len: uint,
        /// indices
        n_indices: uint,
        /// slices of a line
        size: uint,
        /// between the beginnings of two slices
        distance: uint,
        /// the first element of the values
        values: uint,
        /// the first index
        indices: uint,
        /// axes of the lines
        line_axes: uint,
        /// where their view begins
        line_view: uint,
        /// axes of the indices
        index_axes: uint,
        /// where their view begins
        index_view: uint,
        /// axes of a slice
        slice_axes: uint,
        /// where its view begins
        slice_view: uint,
    }
}

constants! {
    /// Elements that indices name along an axis, an index for each.
    PickLayout {
        /// elements of the result
        n: uint,
        /// axes of the indices
        n_axes: uint,
        /// where the views of the indices and of the values begin
        view: uint,
        /// the first index
        indices: uint,
        /// the first element of the values
        values: uint,
        /// elements along the axis
        size: uint,
        /// between two of them
        distance: uint,
    }
}

constants! {
    /// Blocks that tuples of indices name.
    PointsLayout {
        /// elements of the result
        n: uint,
        /// those of a block
        inner: uint,
        /// indices of a tuple
        width: uint,
        /// axes of the tuples
        n_axes: uint,
        /// where their view begins
        view: uint,
        /// the first index
        indices: uint,
        /// between neighbours of a tuple
        right: uint,
        /// where the sizes of the axes that tuples name begin, and behind them the distances
        axes: uint,
        /// the first element of the values
        values: uint,
    }
}

constants! {
    /// Matrices of which one side of the diagonal stays.
    TriangleLayout {
        /// numbers of the result
        n: uint,
        /// axes of the matrices
        n_axes: uint,
        /// where their view begins
        view: uint,
        /// the first number
        a: uint,
        /// rows of a matrix
        rows: uint,
        /// its columns
        columns: uint,
        /// numbers of an element
        n_each: uint,
        /// whether what is above stays
        is_upper: uint,
        /// the bits of how far the diagonal is to the right
        diagonal: uint,
    }
}

constants! {
    /// Running sums along the middle axis of three.
    RunningLayout {
        /// lines
        n: uint,
        /// elements of a line
        length: uint,
        /// between neighbours of a line of the result
        inner: uint,
        /// axes of what is added
        n_axes: uint,
        /// where their view begins
        view: uint,
        /// the first number
        a: uint,
        /// whether a sum ends before its element
        is_exclusive: uint,
        /// whether lines are added from their ends
        is_reversed: uint,
    }
}

constants! {
    /// Blocks that go where points say.
    ScatterLayout {
        /// elements of all blocks
        n: uint,
        /// those of one
        inner: uint,
        /// the first update
        updates: uint,
    }
}

constants! {
    /// Rows that are reduced to a number each.
    ReduceLayout {
        /// rows
        n: uint,
        /// numbers of a row
        length: uint,
        /// what is made of them
        operation: uint,
        /// axes of the rows
        n_axes: uint,
        /// where their view begins
        view: uint,
        /// axes of a row
        inner_axes: uint,
        /// where its view begins
        inner: uint,
        /// the first number
        values: uint,
    }
}

constants! {
    /// Rows that are turned into probabilities, or their logarithms.
    SoftmaxLayout {
        /// rows
        n: uint,
        /// numbers of a row
        length: uint,
        /// axes of the rows
        n_axes: uint,
        /// where their views begin
        view: uint,
        /// the first number of a
        a: uint,
        /// between neighbours of a row of a
        a_right: uint,
        /// the first number of b
        b: uint,
        /// between neighbours of a row of b
        b_right: uint,
        /// whether b is added to a
        is_sum: uint,
        /// whether logarithms are wanted
        is_logarithm: uint,
    }
}

constants! {
    /// Rows that are normalised.
    NormLayout {
        /// rows
        n: uint,
        /// numbers of a row
        length: uint,
        /// the first number
        x: uint,
        /// the first weight
        weight: uint,
        /// the first number that is added
        bias: uint,
        /// whether there is one
        has_bias: uint,
        /// whether the mean stays
        is_rms: uint,
        /// added to the variance
        epsilon: real,
    }
}

constants! {
    /// Products of two stacks of matrices.
    MatricesLayout {
        /// rows of a
        rows: uint,
        /// columns of a, rows of b
        inner: uint,
        /// columns of b
        columns: uint,
        /// axes of the stack
        n_axes: uint,
        /// where its views begin
        view: uint,
        /// the first number of a
        a: uint,
        /// between rows of a
        a_down: uint,
        /// between columns of a
        a_right: uint,
        /// the first number of b
        b: uint,
        /// between rows of b
        b_down: uint,
        /// between columns of b
        b_right: uint,
        /// the first number of the bias
        bias: uint,
        /// what has a bias: columns, rows or nothing
        bias_of: uint,
        /// applied to every result
        activation: uint,
    }
}

numbers! {
    /// lanes that share a row of sums
    ROW_LANES = 16,
    /// rows of a tile of a product
    TILE_ROWS = 16,
    /// its columns
    TILE_COLUMNS = 32,
    /// numbers of the inner axis that are summed before they are added
    TILE_DEPTH = 64,
    /// rows of a tile that a lane has
    ROWS_OF_LANE = 4,
    /// no bias
    BIAS_OF_NOTHING = 0,
    /// a number for each column
    BIAS_OF_COLUMNS = 1,
    /// a number for each row
    BIAS_OF_ROWS = 2,
    /// x
    ACTIVATION_NONE = 0,
    /// x times the normal distribution
    ACTIVATION_GELU = 1,
    /// the same with a hyperbolic tangent
    ACTIVATION_GELU_TANH = 2,
    /// x, or 0 below 0
    ACTIVATION_RELU = 3,
    /// x / (1 + exp(-x))
    ACTIVATION_SILU = 4,
    /// |x|
    UNARY_ABS = 0,
    /// the next whole number above
    UNARY_CEIL = 1,
    /// cosine
    UNARY_COS = 2,
    /// error function
    UNARY_ERF = 3,
    /// exponential
    UNARY_EXP = 4,
    /// the next whole number below
    UNARY_FLOOR = 5,
    /// x times the normal distribution
    UNARY_GELU = 6,
    /// the same with a hyperbolic tangent
    UNARY_GELU_TANH = 7,
    /// logarithm
    UNARY_LOG = 8,
    /// -x
    UNARY_NEG = 9,
    /// 1/x
    UNARY_RECIPROCAL = 10,
    /// x, or 0 below 0
    UNARY_RELU = 11,
    /// 1 / (1 + exp(-x))
    UNARY_SIGMOID = 12,
    /// -1, 0 or 1
    UNARY_SIGN = 13,
    /// x / (1 + exp(-x))
    UNARY_SILU = 14,
    /// sine
    UNARY_SIN = 15,
    /// ln(1 + exp(x))
    UNARY_SOFTPLUS = 16,
    /// square root
    UNARY_SQRT = 17,
    /// hyperbolic tangent
    UNARY_TANH = 18,
    /// a + b
    BINARY_ADD = 0,
    /// a - b
    BINARY_SUB = 1,
    /// a b
    BINARY_MUL = 2,
    /// a / b
    BINARY_DIV = 3,
    /// the larger
    BINARY_MAX = 4,
    /// the smaller
    BINARY_MIN = 5,
    /// a to the power b
    BINARY_POW = 6,
    /// the remainder, with the sign of b
    BINARY_MOD = 7,
    /// angle of the point (b, a)
    BINARY_ATAN2 = 8,
    /// a = b
    BINARY_EQUAL = 9,
    /// a > b
    BINARY_GREATER = 10,
    /// a >= b
    BINARY_GREATER_OR_EQUAL = 11,
    /// a < b
    BINARY_LESS = 12,
    /// a <= b
    BINARY_LESS_OR_EQUAL = 13,
    /// both
    BINARY_AND = 14,
    /// one or both
    BINARY_OR = 15,
    /// one and not both
    BINARY_XOR = 16,
    /// the remainder, with the sign of a
    BINARY_REMAINDER = 17,
    /// -a, of which it is asked whether it is too large
    BINARY_NEGATION = 18,
    /// whether it is 0
    TRUTH_IS_ZERO = 0,
    /// whether it is not 0
    TRUTH_IS_NOT_ZERO = 1,
    /// whether it is NaN
    TRUTH_IS_NAN = 2,
    /// not below b
    CLIP_BELOW = 0,
    /// not above c
    CLIP_ABOVE = 1,
    /// neither
    CLIP_BOTH = 2,
    /// the largest
    REDUCE_MAX = 0,
    /// the mean
    REDUCE_MEAN = 1,
    /// the smallest
    REDUCE_MIN = 2,
    /// the product
    REDUCE_PRODUCT = 3,
    /// the sum
    REDUCE_SUM = 4,
    /// the sum of squares
    REDUCE_SUM_OF_SQUARES = 5,
    /// its square root
    REDUCE_NORM = 6,
}
