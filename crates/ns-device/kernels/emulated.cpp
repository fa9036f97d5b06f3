// The self-test's kernels on the host, and those that are broken on purpose; compiled once per
// precision.
#include "runtime.h"

namespace KERNELS {
#include "dialect.h"
#include "self_test.h"
#include "broken.h"

EXPORT(self_test_sum)
EXPORT(self_test_product)
EXPORT(self_test_functions)
EXPORT(self_test_special)
EXPORT(self_test_shuffle)
EXPORT(self_test_visibility)

EXPORT(broken_barrier)
EXPORT(broken_end)
EXPORT(broken_shuffle)
EXPORT(broken_shared)
EXPORT(broken_unwritten)
EXPORT(broken_sum)
EXPORT(broken_bounds)
} // namespace KERNELS
