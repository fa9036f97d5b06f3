// The encoders' kernels' text in order; a front end includes its dialect first.
#include "layout.h"
#include "../bits.h"
#include "views.h"
#include "functions.h"
#include "wide.h"
#include "sums.h"
#include "products.h"
#include "kernels.h"
