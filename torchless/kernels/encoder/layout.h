// Generated from src/encoder/device/layout_fields.rs by the build script; do not edit.

// Elements that are treated one by one, of up to three tensors of one shape.
STRUCT(ElementsLayout) {
    uint n;  // how many there are
    uint n_axes;  // axes of the shape
    uint view;  // where its views begin
    uint operation;  // what is done
    uint a;  // the first element of a
    uint b;  // that of b
    uint c;  // that of c
    uint out;  // that of out, where it is strided
};

// One number, many times.
STRUCT(FillLayout) {
    uint n;  // how many times
    real number;  // the number
    uint integer;  // the bits of the whole number
};

// Indices that must be in range.
STRUCT(IndicesLayout) {
    uint n;  // how many there are
    uint n_axes;  // axes of their shape
    uint view;  // where its view begins
    uint indices;  // the first one
    uint size;  // slices that there are
    uint fault;  // where the answer goes
};

// Slices of lines that indices name.
STRUCT(GatherLayout) {
    uint n;  // elements of the result
    uint slice_len;  // elements of a slice
    uint n_indices;  // indices
    uint size;  // slices of a line
    uint distance;  // between the beginnings of two slices
    uint values;  // the first element of the values
    uint indices;  // the first index
    uint line_axes;  // axes of the lines
    uint line_view;  // where their view begins
    uint index_axes;  // axes of the indices
    uint index_view;  // where their view begins
    uint slice_axes;  // axes of a slice
    uint slice_view;  // where its view begins
};

// Elements that indices name along an axis, an index for each.
STRUCT(PickLayout) {
    uint n;  // elements of the result
    uint n_axes;  // axes of the indices
    uint view;  // where the views of the indices and of the values begin
    uint indices;  // the first index
    uint values;  // the first element of the values
    uint size;  // elements along the axis
    uint distance;  // between two of them
};

// Blocks that tuples of indices name.
STRUCT(PointsLayout) {
    uint n;  // elements of the result
    uint inner;  // those of a block
    uint width;  // indices of a tuple
    uint n_axes;  // axes of the tuples
    uint view;  // where their view begins
    uint indices;  // the first index
    uint right;  // between neighbours of a tuple
    uint axes;  // where the sizes of the axes that tuples name begin, and behind them the distances
    uint values;  // the first element of the values
};

// Matrices of which one side of the diagonal stays.
STRUCT(TriangleLayout) {
    uint n;  // numbers of the result
    uint n_axes;  // axes of the matrices
    uint view;  // where their view begins
    uint a;  // the first number
    uint rows;  // rows of a matrix
    uint columns;  // its columns
    uint n_each;  // numbers of an element
    uint is_upper;  // whether what is above stays
    uint diagonal;  // the bits of how far the diagonal is to the right
};

// Running sums along the middle axis of three.
STRUCT(RunningLayout) {
    uint n;  // lines
    uint length;  // elements of a line
    uint inner;  // between neighbours of a line of the result
    uint n_axes;  // axes of what is added
    uint view;  // where their view begins
    uint a;  // the first number
    uint is_exclusive;  // whether a sum ends before its element
    uint is_reversed;  // whether lines are added from their ends
};

// Blocks that go where points say.
STRUCT(ScatterLayout) {
    uint n;  // elements of all blocks
    uint inner;  // those of one
    uint updates;  // the first update
};

// Rows that are reduced to a number each.
STRUCT(ReduceLayout) {
    uint n;  // rows
    uint length;  // numbers of a row
    uint operation;  // what is made of them
    uint n_axes;  // axes of the rows
    uint view;  // where their view begins
    uint inner_axes;  // axes of a row
    uint inner;  // where its view begins
    uint values;  // the first number
};

// Rows that are turned into probabilities, or their logarithms.
STRUCT(SoftmaxLayout) {
    uint n;  // rows
    uint length;  // numbers of a row
    uint n_axes;  // axes of the rows
    uint view;  // where their views begin
    uint a;  // the first number of a
    uint a_right;  // between neighbours of a row of a
    uint b;  // the first number of b
    uint b_right;  // between neighbours of a row of b
    uint is_sum;  // whether b is added to a
    uint is_logarithm;  // whether logarithms are wanted
};

// Rows that are normalised.
STRUCT(NormLayout) {
    uint n;  // rows
    uint length;  // numbers of a row
    uint x;  // the first number
    uint weight;  // the first weight
    uint bias;  // the first number that is added
    uint has_bias;  // whether there is one
    uint is_rms;  // whether the mean stays
    real epsilon;  // added to the variance
};

// Products of two stacks of matrices.
STRUCT(MatricesLayout) {
    uint rows;  // rows of a
    uint inner;  // columns of a, rows of b
    uint columns;  // columns of b
    uint n_axes;  // axes of the stack
    uint view;  // where its views begin
    uint a;  // the first number of a
    uint a_down;  // between rows of a
    uint a_right;  // between columns of a
    uint b;  // the first number of b
    uint b_down;  // between rows of b
    uint b_right;  // between columns of b
    uint bias;  // the first number of the bias
    uint bias_of;  // what has a bias: columns, rows or nothing
    uint activation;  // applied to every result
};

#define ROW_LANES 16u // lanes that share a row of sums
#define TILE_ROWS 16u // rows of a tile of a product
#define TILE_COLUMNS 32u // its columns
#define TILE_DEPTH 64u // numbers of the inner axis that are summed before they are added
#define ROWS_OF_LANE 4u // rows of a tile that a lane has
#define BIAS_OF_NOTHING 0u // no bias
#define BIAS_OF_COLUMNS 1u // a number for each column
#define BIAS_OF_ROWS 2u // a number for each row
#define ACTIVATION_NONE 0u // x
#define ACTIVATION_GELU 1u // x times the normal distribution
#define ACTIVATION_GELU_TANH 2u // the same with a hyperbolic tangent
#define ACTIVATION_RELU 3u // x, or 0 below 0
#define ACTIVATION_SILU 4u // x / (1 + exp(-x))
#define UNARY_ABS 0u // |x|
#define UNARY_CEIL 1u // the next whole number above
#define UNARY_COS 2u // cosine
#define UNARY_ERF 3u // error function
#define UNARY_EXP 4u // exponential
#define UNARY_FLOOR 5u // the next whole number below
#define UNARY_GELU 6u // x times the normal distribution
#define UNARY_GELU_TANH 7u // the same with a hyperbolic tangent
#define UNARY_LOG 8u // logarithm
#define UNARY_NEG 9u // -x
#define UNARY_RECIPROCAL 10u // 1/x
#define UNARY_RELU 11u // x, or 0 below 0
#define UNARY_SIGMOID 12u // 1 / (1 + exp(-x))
#define UNARY_SIGN 13u // -1, 0 or 1
#define UNARY_SILU 14u // x / (1 + exp(-x))
#define UNARY_SIN 15u // sine
#define UNARY_SOFTPLUS 16u // ln(1 + exp(x))
#define UNARY_SQRT 17u // square root
#define UNARY_TANH 18u // hyperbolic tangent
#define BINARY_ADD 0u // a + b
#define BINARY_SUB 1u // a - b
#define BINARY_MUL 2u // a b
#define BINARY_DIV 3u // a / b
#define BINARY_MAX 4u // the larger
#define BINARY_MIN 5u // the smaller
#define BINARY_POW 6u // a to the power b
#define BINARY_MOD 7u // the remainder, with the sign of b
#define BINARY_ATAN2 8u // angle of the point (b, a)
#define BINARY_EQUAL 9u // a = b
#define BINARY_GREATER 10u // a > b
#define BINARY_GREATER_OR_EQUAL 11u // a >= b
#define BINARY_LESS 12u // a < b
#define BINARY_LESS_OR_EQUAL 13u // a <= b
#define BINARY_AND 14u // both
#define BINARY_OR 15u // one or both
#define BINARY_XOR 16u // one and not both
#define BINARY_REMAINDER 17u // the remainder, with the sign of a
#define BINARY_NEGATION 18u // -a, of which it is asked whether it is too large
#define TRUTH_IS_ZERO 0u // whether it is 0
#define TRUTH_IS_NOT_ZERO 1u // whether it is not 0
#define TRUTH_IS_NAN 2u // whether it is NaN
#define CLIP_BELOW 0u // not below b
#define CLIP_ABOVE 1u // not above c
#define CLIP_BOTH 2u // neither
#define REDUCE_MAX 0u // the largest
#define REDUCE_MEAN 1u // the mean
#define REDUCE_MIN 2u // the smallest
#define REDUCE_PRODUCT 3u // the product
#define REDUCE_SUM 4u // the sum
#define REDUCE_SUM_OF_SQUARES 5u // the sum of squares
#define REDUCE_NORM 6u // its square root
