// The context of every function of the likelihood kernels: the model, the data and the working
// memory. Legend: B bins, T templates, P parameters, G global and L local parameters, K constraint
// terms.

STRUCT(Context) {
    CONSTANT Layout* layout;
    const GLOBAL uint* indices;   // the model's tables of indices
    const GLOBAL real* reals;     // the model's tables of numbers
    GLOBAL real* work;            // this block's memory, layout->workspace numbers
    SHARED real* shared;          // 2 N_LANES numbers for sums, then PANEL * PANEL for a diagonal block
    const GLOBAL real* counts;    // the count of each bin (B)
    const GLOBAL real* aux;       // auxiliary data (K)
};

#define INDEX(table) (context.indices + context.layout->table)
#define REAL_TABLE(table) (context.reals + context.layout->table)
#define WORK(table) (context.work + context.layout->work_##table)

// A number and its rounding error.
STRUCT(Compensated) {
    real sum, rest;
};

// Returns a + x, with the rounding error.
FN Compensated plus(Compensated a, real x) {
    Compensated out;
    out.sum = a.sum + x;
    const real added = out.sum - a.sum;
    out.rest = a.rest + ((a.sum - (out.sum - added)) + (x - added));
    return out;
}

// Returns the sum over all lanes: the same bits for every lane and every order of lanes. N_LANES is
// a power of two.
FN real block_sum(const Context context, Compensated own LANES_PARAM) {
    SHARED real* sums = context.shared;
    SHARED real* rests = context.shared + N_LANES;
    sums[LANE] = own.sum;
    rests[LANE] = own.rest;
    BARRIER();
    for (uint width = N_LANES / 2u; width > 0u; width /= 2u) {
        if (LANE < width) {
            Compensated pair;
            pair.sum = sums[LANE];
            pair.rest = rests[LANE] + rests[LANE + width];
            pair = plus(pair, sums[LANE + width]);
            sums[LANE] = pair.sum;
            rests[LANE] = pair.rest;
        }
        BARRIER();
    }
    const real total = sums[0] + rests[0];
    BARRIER();
    return total;
}

// Returns zero.
FN Compensated nothing() {
    Compensated zero;
    zero.sum = R(0.0);
    zero.rest = R(0.0);
    return zero;
}
