// Sums of weighted values, with weights in the address space SPACE; attention.h includes this for
// both.

#define SUMS 2u
#define SUMMED(name) WEIGHED(JOINED(name, narrow))
#include "values.h"
#undef SUMS
#undef SUMMED
#define SUMS 4u
#define SUMMED(name) WEIGHED(JOINED(name, middle))
#include "values.h"
#undef SUMS
#undef SUMMED
#define SUMS (MAX_HEAD_DIM / WARP)
#define SUMMED(name) WEIGHED(JOINED(name, wide))
#include "values.h"
#undef SUMS
#undef SUMMED

// The warps' sums of weights (n) times rows of values, `stride` apart: parts (warps, D). Warp w has
// the rows w, w + warps, …
FN void WEIGHED(sum_values)(SPACE const real* weights, uint n, GLOBAL const real* values, uint stride, uint head_dim,
                            SHARED real* parts LANES_PARAM) {
    if (head_dim <= 2u * WARP) {
        WEIGHED(sum_rows_narrow)(weights, n, values, stride, head_dim, parts LANES_ARG);
    } else if (head_dim <= 4u * WARP) {
        WEIGHED(sum_rows_middle)(weights, n, values, stride, head_dim, parts LANES_ARG);
    } else {
        WEIGHED(sum_rows_wide)(weights, n, values, stride, head_dim, parts LANES_ARG);
    }
    BARRIER();
}
