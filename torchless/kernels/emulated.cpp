// The transformer's kernels on the host; compiled once per precision, and used in single.
#include "runtime.h"

namespace KERNELS {
#include "dialect.h"
#include "all.h"

EXPORT(embedding)
EXPORT(rmsnorm)
EXPORT(softmax)
EXPORT(silu)
EXPORT(silu_mul)
EXPORT(add)
EXPORT(rope)
EXPORT(matvec)
EXPORT(matvec_tiled)
EXPORT(matmul)
EXPORT(attention)
EXPORT(attention_tiles)
EXPORT(attention_sum)
EXPORT(attention_scores)
EXPORT(weighted_sum)
} // namespace KERNELS
