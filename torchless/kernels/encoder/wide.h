// Arithmetic with about 46 bits in single precision, for what the CPU computes in double precision:
// a number is the sum of two, the nearest number of single precision and what is left. Errors of
// sums and products are numbers, too. Sources: Dekker, Numerische Mathematik 18 (1971) 224; Knuth,
// The Art of Computer Programming 2, 4.2.2, theorem B. No product is followed by a sum that changes
// where both are fused.
//
// Numbers are as large as those of single precision; below 1e-30 they lose their second part.
// Behind a number that is not finite there is 0.

STRUCT(Wide) {
    real high;
    real low;
};

FN Wide wide_of(real high, real low) {
    Wide number;
    number.high = high;
    number.low = low;
    return number;
}

// a + b, where a is not the smaller one.
FN Wide settled(real a, real b) {
    if (!IS_FINITE(a)) return wide_of(a, R(0.0));
    const real high = a + b;
    return wide_of(high, IS_FINITE(high) ? b - (high - a) : R(0.0));
}

FN Wide exact_sum(real a, real b) {
    const real high = a + b, rest = high - a;
    return wide_of(high, IS_FINITE(high) ? (a - (high - rest)) + (b - rest) : R(0.0));
}

FN Wide exact_product(real a, real b) {
    const real high = a * b;
    return wide_of(high, IS_FINITE(high) ? FMA(a, b, -high) : R(0.0));
}

FN Wide negative_of(Wide a) { return wide_of(-a.high, -a.low); }

FN Wide sum_of(Wide a, Wide b) {
    const Wide high = exact_sum(a.high, b.high), low = exact_sum(a.low, b.low);
    const Wide sum = settled(high.high, high.low + low.high);
    return settled(sum.high, sum.low + low.low);
}

FN Wide product_of(Wide a, Wide b) {
    const Wide high = exact_product(a.high, b.high);
    return settled(high.high, high.low + (a.high * b.low + a.low * b.high));
}

// a times a power of two.
FN Wide scaled_by(Wide a, real power) { return wide_of(a.high * power, a.low * power); }

FN Wide quotient_of(Wide a, Wide b) {
    const real first = a.high / b.high;
    if (!IS_FINITE(first) || !IS_FINITE(b.high)) return wide_of(first, R(0.0));
    Wide rest = sum_of(a, negative_of(product_of(b, wide_of(first, R(0.0)))));
    const real second = rest.high / b.high;
    rest = sum_of(rest, negative_of(product_of(b, wide_of(second, R(0.0)))));
    return sum_of(settled(first, second), wide_of(rest.high / b.high, R(0.0)));
}

FN Wide root_of(Wide a) {
    const real root = SQRT(a.high);
    if (!(root > R(0.0)) || !IS_FINITE(root)) return wide_of(root, R(0.0));
    const Wide rest = sum_of(a, negative_of(exact_product(root, root)));
    return settled(root, rest.high / (root + root));
}

FN Wide floor_of(Wide a) {
    const real whole = FLOOR(a.high);
    return whole == a.high ? settled(whole, FLOOR(a.low)) : wide_of(whole, R(0.0));
}

FN bool is_less(Wide a, Wide b) { return a.high < b.high || (a.high == b.high && a.low < b.low); }

FN bool is_nan(Wide a) { return !(a.high == a.high); }

// e^x of an x of single precision whose power is within the range: a series of x/64, less multiples
// of ln 2, squared six times.
FN Wide power_of(real x) {
    const real n = FLOOR(FMA(x, R(1.44269504088896341), R(0.5)));
    const Wide ln_2 = wide_of(R(0.6931471825), R(-1.90465421e-9));
    Wide rest = sum_of(wide_of(x, R(0.0)), negative_of(product_of(wide_of(n, R(0.0)), ln_2)));
    rest = scaled_by(rest, R(0.015625));
    const real r = rest.high, tail = FMA(FMA(r, R(0.008333333768), R(0.04166666791)), r, R(0.1666666716)) * r * r * r;
    const Wide half_square = scaled_by(product_of(rest, rest), R(0.5));
    Wide power = sum_of(wide_of(R(1.0), R(0.0)), sum_of(rest, sum_of(half_square, wide_of(tail, R(0.0)))));
    for (uint i = 0u; i < 6u; ++i) power = product_of(power, power);
    const real half_n = FLOOR(n * R(0.5));
    power = scaled_by(power, real_of_bits(uint(half_n + R(127.0)) << 23u));
    return scaled_by(power, real_of_bits(uint(n - half_n + R(127.0)) << 23u));
}

// The logarithm y of single precision, and a step of Newton's: x e^-y - 1.
FN Wide logarithm_of(Wide x) {
    const real y = LN(x.high);
    if (!(x.high > R(1e-35)) || !(x.high < R(1e35))) return wide_of(y, R(0.0));
    return sum_of(wide_of(y, R(0.0)), sum_of(product_of(x, power_of(-y)), wide_of(R(-1.0), R(0.0))));
}

STRUCT(SineAndCosine) {
    Wide sine;
    Wide cosine;
};

// Of an angle within pi, of single precision: series of an eighth of it, doubled three times.
FN SineAndCosine sine_and_cosine(real angle) {
    const Wide x = wide_of(angle * R(0.125), R(0.0)), square = negative_of(product_of(x, x)), one = wide_of(R(1.0), R(0.0));
    Wide sine = wide_of(R(2.755731884e-6), R(0.0));
    sine = sum_of(product_of(sine, square), wide_of(R(1.984127011e-4), R(-2.72559687e-12)));
    sine = sum_of(product_of(sine, square), wide_of(R(0.008333333768), R(-4.34617203e-10)));
    sine = sum_of(product_of(sine, square), wide_of(R(0.1666666716), R(-4.96705388e-9)));
    sine = product_of(sum_of(product_of(sine, square), one), x);
    Wide cosine = wide_of(R(2.755731998e-7), R(0.0));
    cosine = sum_of(product_of(cosine, square), wide_of(R(2.480158764e-5), R(-3.40699609e-13)));
    cosine = sum_of(product_of(cosine, square), wide_of(R(0.001388888923), R(-3.36310944e-11)));
    cosine = sum_of(product_of(cosine, square), wide_of(R(0.04166666791), R(-1.24176347e-9)));
    cosine = sum_of(product_of(cosine, square), wide_of(R(0.5), R(0.0)));
    cosine = sum_of(product_of(cosine, square), one);
    for (uint i = 0u; i < 3u; ++i) {
        const Wide twice = scaled_by(sine, R(2.0));
        sine = product_of(twice, cosine);
        cosine = sum_of(product_of(cosine, scaled_by(cosine, R(2.0))), wide_of(R(-1.0), R(0.0)));
    }
    SineAndCosine both;
    both.sine = sine;
    both.cosine = cosine;
    return both;
}

// The angle of (x, y) to about seven digits.
FN real rough_angle(real y, real x) {
    const real across = ABS(x), up = ABS(y);
    const real ratio = MIN(across, up) / MAX(across, up), square = ratio * ratio;
    real series = R(-0.00482191192);
    series = FMA(series, square, R(0.0247318968));
    series = FMA(series, square, R(-0.0602001771));
    series = FMA(series, square, R(0.0996827409));
    series = FMA(series, square, R(-0.140412599));
    series = FMA(series, square, R(0.199742034));
    series = FMA(series, square, R(-0.333323896));
    real angle = FMA(series * square, ratio, ratio);
    if (up > across) angle = R(1.570796371) - angle;
    if (x < R(0.0)) angle = R(3.141592741) - angle;
    return COPYSIGN(angle, y);
}

// The angle of the point (x, y): a rough one, and what is left, whose sine is the distance of the
// point from the line with that angle.
FN Wide angle_of(Wide y, Wide x) {
    if (is_nan(y) || is_nan(x)) return wide_of(y.high + x.high, R(0.0));
    // Of infinite coordinates only their signs count.
    if (!IS_FINITE(y.high) || !IS_FINITE(x.high)) {
        y = wide_of(COPYSIGN(IS_FINITE(y.high) ? R(0.0) : R(1.0), y.high), R(0.0));
        x = wide_of(COPYSIGN(IS_FINITE(x.high) ? R(0.0) : R(1.0), x.high), R(0.0));
    }
    const real longer = MAX(ABS(x.high), ABS(y.high)), ratio = MIN(ABS(x.high), ABS(y.high)) / longer;
    if (longer == R(0.0)) {
        if (!SIGN_BIT(x.high)) return y;
        return wide_of(COPYSIGN(R(3.141592741), y.high), COPYSIGN(R(8.74227766e-8), -y.high));
    }
    const real rough = rough_angle(y.high, x.high), radius = longer * SQRT(FMA(ratio, ratio, R(1.0)));
    const SineAndCosine of_rough = sine_and_cosine(rough);
    const Wide off = sum_of(product_of(y, of_rough.cosine), negative_of(product_of(x, of_rough.sine)));
    return sum_of(wide_of(rough, R(0.0)), wide_of(off.high / radius, R(0.0)));
}

// The function that `operation` names; the same for a whole launch.
FN Wide wide_function_of(uint operation, Wide x) {
    if (operation == UNARY_FLOOR) return floor_of(x);
    if (operation == UNARY_LOG) return logarithm_of(x);
    if (operation == UNARY_NEG) return negative_of(x);
    if (operation == UNARY_SQRT) return root_of(x);
    // The absolute value.
    if (SIGN_BIT(x.high)) return negative_of(x);
    return x;
}

// What `operation` makes of two numbers; powers are squares and roots.
FN Wide wide_arithmetic_of(uint operation, Wide a, Wide b) {
    if (operation == BINARY_ADD) return sum_of(a, b);
    if (operation == BINARY_SUB) return sum_of(a, negative_of(b));
    if (operation == BINARY_MUL) return product_of(a, b);
    if (operation == BINARY_DIV) return quotient_of(a, b);
    if (operation == BINARY_MAX) return is_less(b, a) || is_nan(a) ? a : b;
    if (operation == BINARY_MIN) return is_less(a, b) || is_nan(a) ? a : b;
    if (operation == BINARY_POW && b.high == R(2.0)) return product_of(a, a);
    if (operation == BINARY_POW) return root_of(a);
    // The remainder with the sign of the divisor.
    if (operation == BINARY_MOD) return sum_of(a, negative_of(product_of(floor_of(quotient_of(a, b)), b)));
    return angle_of(a, b);
}
