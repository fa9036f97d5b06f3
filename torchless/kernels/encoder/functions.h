// Functions of one number, with the operations and in the order of the CPU's, so that the bits are
// the same where products and sums are rounded alike. The coefficients are minimax fits of these
// functions.

// e^x: 0 below -104, infinite above 89.
FN real exp_of(real x) {
    x = x < R(-104.0) ? R(-104.0) : x;
    x = x > R(89.0) ? R(89.0) : x;
    // Adding and subtracting 1.5 * 2^23 rounds to a whole number.
    const real n = FMA(x, R(1.44269504088896341), R(12582912.0)) - R(12582912.0);
    // ln 2 in two parts: the first has zeros at its end, so that its product with n is exact.
    real rest = FMA(n, R(-0.6933594), x);
    rest = FMA(n, R(2.1219444e-4), rest);
    real series = R(0.0013956062);
    series = FMA(series, rest, R(0.008375135));
    series = FMA(series, rest, R(0.041666083));
    series = FMA(series, rest, R(0.16666415));
    series = FMA(series, rest, R(0.5));
    const real sum = FMA(series, rest * rest, rest) + R(1.0);
    // In two factors: the whole may be below the smallest normal number. NaN has no whole number.
    const real power = n == n ? n : R(0.0), half_power = FLOOR(power * R(0.5));
    return sum * real_of_bits(uint(half_power + R(127.0)) << 23u) * real_of_bits(uint(power - half_power + R(127.0)) << 23u);
}

FN real erf_of(real x) {
    const real size = ABS(x) > R(4.0) ? R(4.0) : ABS(x), square = x * x;
    real near = R(7.889119e-5);
    near = FMA(near, square, R(-8.020841e-4));
    near = FMA(near, square, R(0.005189535));
    near = FMA(near, square, R(-0.026854444));
    near = FMA(near, square, R(0.112836));
    near = FMA(near, square, R(-0.37612626));
    near = FMA(near, square, R(0.12837917));
    near = FMA(near, x, x);
    // The logarithm of 1 - erf.
    real tail = R(-2.1496116e-5);
    tail = FMA(tail, size, R(4.3910664e-4));
    tail = FMA(tail, size, R(-0.004193611));
    tail = FMA(tail, size, R(0.025178969));
    tail = FMA(tail, size, R(-0.10837248));
    tail = FMA(tail, size, R(-0.63326263));
    tail = FMA(tail, size, R(-1.1295568));
    tail = FMA(tail, size, R(1.8344418e-4));
    const real far = COPYSIGN(R(1.0) - exp_of(tail), x);
    return size < R(1.0) ? near : far;
}

FN real gelu_of(real x) { return R(0.5) * x * (R(1.0) + erf_of(x * R(0.70710678118654752))); }

// x/2 (1 + tanh u) is x / (1 + exp(-2 u)).
FN real gelu_tanh_of(real x) { return x / (R(1.0) + exp_of(R(-1.595769) * (x + R(0.044715) * x * x * x))); }

FN real sigmoid_of(real x) { return R(1.0) / (R(1.0) + exp_of(-x)); }

FN real silu_of(real x) { return x / (R(1.0) + exp_of(-x)); }

// Zeros keep their sign, and NaN stays.
FN real relu_of(real x) { return x < R(0.0) ? R(0.0) : x; }

FN real tanh_of(real x) {
    const real square = x * x;
    real near = R(0.01643751);
    near = FMA(near, square, R(-0.0526717715));
    near = FMA(near, square, R(0.133207247));
    near = FMA(near, square, R(-0.333329469));
    near = FMA(x * square, near, x);
    const real far = COPYSIGN(R(1.0) - R(2.0) / (exp_of(R(2.0) * ABS(x)) + R(1.0)), x);
    return ABS(x) < R(0.55) ? near : far;
}

// ln(1 + e^x): of a small e^x, u = 1 + e^x is rounded, and ln(u) / (u - 1) is nearly the same for
// its neighbours.
FN real softplus_of(real x) {
    const real power = exp_of(-ABS(x)), more = R(1.0) + power;
    const real logarithm = more == R(1.0) ? power : LN(more) * (power / (more - R(1.0)));
    return (x > R(0.0) || !(x == x) ? x : R(0.0)) + logarithm;
}

FN real sign_of(real x) { return x > R(0.0) ? R(1.0) : (x < R(0.0) ? R(-1.0) : x); }

// The function that `operation` names; the same for a whole launch.
FN real function_of(uint operation, real x) {
    if (operation == UNARY_ABS) return ABS(x);
    if (operation == UNARY_CEIL) return -FLOOR(-x);
    if (operation == UNARY_COS) return COS(x);
    if (operation == UNARY_ERF) return erf_of(x);
    if (operation == UNARY_EXP) return exp_of(x);
    if (operation == UNARY_FLOOR) return FLOOR(x);
    if (operation == UNARY_GELU) return gelu_of(x);
    if (operation == UNARY_GELU_TANH) return gelu_tanh_of(x);
    if (operation == UNARY_LOG) return LN(x);
    if (operation == UNARY_NEG) return -x;
    if (operation == UNARY_RECIPROCAL) return R(1.0) / x;
    if (operation == UNARY_RELU) return relu_of(x);
    if (operation == UNARY_SIGMOID) return sigmoid_of(x);
    if (operation == UNARY_SIGN) return sign_of(x);
    if (operation == UNARY_SILU) return silu_of(x);
    if (operation == UNARY_SIN) return SIN(x);
    if (operation == UNARY_SOFTPLUS) return softplus_of(x);
    if (operation == UNARY_SQRT) return SQRT(x);
    if (operation == UNARY_TANH) return tanh_of(x);
    return x;
}

// What `operation` makes of two numbers. Of two of which one is NaN, the larger and the smaller are
// NaN.
FN real arithmetic_of(uint operation, real a, real b) {
    if (operation == BINARY_ADD) return a + b;
    if (operation == BINARY_SUB) return a - b;
    if (operation == BINARY_MUL) return a * b;
    if (operation == BINARY_DIV) return a / b;
    if (operation == BINARY_MAX) return a > b || !(a == a) ? a : b;
    if (operation == BINARY_MIN) return a < b || !(a == a) ? a : b;
    if (operation == BINARY_POW) return b == R(2.0) ? a * a : (b == R(0.5) ? SQRT(a) : POW(a, b));
    // The remainder with the sign of the divisor.
    const real whole = FLOOR(a / b) * b;
    return a - whole;
}
