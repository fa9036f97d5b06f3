// Products of a stored matrix with vectors: every output is one sum in one order, whichever kernel
// computes it.
//
// A warp has ROWS rows and VECTORS vectors. Its lanes go along the rows together: lane l has the
// parts l, l + 32, … of a row, whose sums are added at the end. Neither tiles nor the number of
// vectors change that order, so a token's numbers do not depend on its company.
//
// OpenCL C has no templates. What depends on the format and on the shape of a product is in headers
// that are included for each; there, OF(name) is the name with the format's, SHAPED(name) with the
// shape's too.
#define JOINED_(name, of) name##_##of
#define JOINED(name, of) JOINED_(name, of)
#define OF(name) JOINED(name, FORMAT)
#define SHAPED(name) OF(JOINED(name, SHAPE))

// Copies columns of `n` vectors to `tile` (n, TILE); what is past the end of a vector, or past the
// last vector, is 0.
FN void load_tile(CONSTANT ProductLayout* layout, uint n, uint first_vector, uint first_column, GLOBAL const real* x,
                  SHARED real* tile LANES_PARAM) {
    for (uint item = LANE; item < n * TILE; item += N_LANES) {
        const uint vector = first_vector + item / TILE, column = first_column + item % TILE;
        const bool is_there = vector < layout->n_vectors && column < layout->columns;
        tile[item] = is_there ? x[layout->x_offset + vector * layout->columns + column] : R(0.0);
    }
    BARRIER();
}

#define FORMAT F32
#include "products_of_format.h"
#undef FORMAT
#define FORMAT F16
#include "products_of_format.h"
#undef FORMAT
#define FORMAT BF16
#include "products_of_format.h"
#undef FORMAT
#define FORMAT Q8_0
#include "products_of_format.h"
#undef FORMAT
#define FORMAT Q4_0
#include "products_of_format.h"
#undef FORMAT
#define FORMAT Q4_1
#include "products_of_format.h"
#undef FORMAT
#define FORMAT Q5_0
#include "products_of_format.h"
#undef FORMAT
#define FORMAT Q4K
#include "products_of_format.h"
#undef FORMAT
#define FORMAT Q5K
#include "products_of_format.h"
#undef FORMAT
#define FORMAT Q6K
#include "products_of_format.h"
#undef FORMAT

// Calls the function of the format that `number` names. Uniform over a launch.
#define WITH_FORMAT(number, function, ...)                                \
    WHERE (number == FORMAT_F32) { JOINED(function, F32)(__VA_ARGS__); }   \
    WHERE (number == FORMAT_F16) { JOINED(function, F16)(__VA_ARGS__); }   \
    WHERE (number == FORMAT_BF16) { JOINED(function, BF16)(__VA_ARGS__); } \
    WHERE (number == FORMAT_Q8_0) { JOINED(function, Q8_0)(__VA_ARGS__); } \
    WHERE (number == FORMAT_Q4_0) { JOINED(function, Q4_0)(__VA_ARGS__); } \
    WHERE (number == FORMAT_Q4_1) { JOINED(function, Q4_1)(__VA_ARGS__); } \
    WHERE (number == FORMAT_Q5_0) { JOINED(function, Q5_0)(__VA_ARGS__); } \
    WHERE (number == FORMAT_Q4K) { JOINED(function, Q4K)(__VA_ARGS__); }   \
    WHERE (number == FORMAT_Q5K) { JOINED(function, Q5K)(__VA_ARGS__); }   \
    WHERE (number == FORMAT_Q6K) { JOINED(function, Q6K)(__VA_ARGS__); }
