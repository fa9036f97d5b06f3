// The kernels' text in order; a front end includes its dialect first.
#include "layout.h"
#include "bits.h"
#include "formats.h"
#include "reduce.h"
#include "products.h"
#include "rows.h"
#include "attention.h"
#include "kernels.h"
