// The likelihood's kernels on the host; compiled once per precision.
#include "runtime.h"

namespace KERNELS {
#include "dialect.h"
#include "all.h"

EXPORT(nll)
EXPORT(nll_and_gradient)
EXPORT(nll_and_gradients)
EXPORT(set_templates)
EXPORT(newton)
EXPORT(fit)
} // namespace KERNELS
