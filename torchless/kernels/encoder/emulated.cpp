// The encoders' kernels on the host; compiled once per precision, and used in single.
#include "runtime.h"

namespace KERNELS {
#include "dialect.h"
#include "all.h"

EXPORT(map_reals)
EXPORT(combine_reals)
EXPORT(compare_reals)
EXPORT(combine_ints)
EXPORT(truth_of_ints)
EXPORT(truth_of_reals)
EXPORT(reals_of_ints)
EXPORT(choose_reals)
EXPORT(choose_ints)
EXPORT(clip_reals)
EXPORT(place_reals)
EXPORT(place_ints)
EXPORT(fill_reals)
EXPORT(fill_ints)
EXPORT(check_indices)
EXPORT(gather_reals)
EXPORT(gather_ints)
EXPORT(scatter_reals)
EXPORT(map_wide)
EXPORT(combine_wide)
EXPORT(sum_wide)
EXPORT(reduce_reals)
EXPORT(softmax_rows)
EXPORT(norm_rows)
EXPORT(multiply_matrices)
} // namespace KERNELS
