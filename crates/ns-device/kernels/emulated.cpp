// The self-test's kernels on the host; compiled once per precision.
#include "runtime.h"

namespace KERNELS {
#include "dialect.h"
#include "self_test.h"

EXPORT(self_test_sum)
EXPORT(self_test_product)
EXPORT(self_test_functions)
EXPORT(self_test_special)
EXPORT(self_test_shuffle)
EXPORT(self_test_visibility)
} // namespace KERNELS
