// Arithmetic of whole numbers of 32 bits. Bits that are too many are cut off; `is_too_large` finds
// such results.

// |x|, of -2^31, too.
FN uint size_of_int(int x) { return x < 0 ? 0u - uint(x) : uint(x); }

FN int int_of_size(uint size, bool is_negative) { return int_of_bits(is_negative ? 0u - size : size); }

// a to the power n; 1 for a negative n.
FN int int_power_of(int a, int n) {
    uint power = 1u, square = uint(a);
    for (; n > 0; n /= 2) {
        if (n % 2 == 1) power *= square;
        square *= square;
    }
    return int_of_bits(power);
}

// What `operation` makes of two whole numbers; what is left of a division by 0, and its quotient,
// are 0.
FN int int_arithmetic_of(uint operation, int a, int b) {
    if (operation == BINARY_ADD) return int_of_bits(uint(a) + uint(b));
    if (operation == BINARY_SUB) return int_of_bits(uint(a) - uint(b));
    if (operation == BINARY_MUL) return int_of_bits(uint(a) * uint(b));
    if (operation == BINARY_POW) return int_power_of(a, b);
    if (b == 0) return 0;
    if (operation == BINARY_DIV) return int_of_size(size_of_int(a) / size_of_int(b), (a < 0) != (b < 0));
    const int rest = int_of_size(size_of_int(a) % size_of_int(b), a < 0);
    const bool is_other_sign = rest != 0 && (rest < 0) != (b < 0);
    return operation == BINARY_MOD && is_other_sign ? rest + b : rest;
}

// The function that `operation` names of a whole number.
FN int int_function_of(uint operation, int x) {
    if (operation == UNARY_ABS) return int_of_bits(size_of_int(x));
    if (operation == UNARY_NEG) return int_of_bits(0u - uint(x));
    if (operation == UNARY_RELU) return MAX(x, 0);
    // The sign.
    return x > 0 ? 1 : (x < 0 ? -1 : 0);
}

FN bool is_product_too_large(int a, int b) {
    const uint size = size_of_int(a), most = (a < 0) != (b < 0) ? 0x80000000u : 0x7fffffffu;
    return size != 0u && size_of_int(b) > most / size;
}

FN bool is_power_too_large(int a, int n) {
    int power = 1, square = a;
    for (; n > 0; n /= 2) {
        if (n % 2 == 1) {
            if (is_product_too_large(power, square)) return true;
            power *= square;
        }
        // The last square is not used.
        if (n > 1) {
            if (is_product_too_large(square, square)) return true;
            square *= square;
        }
    }
    return false;
}

// Whether what `operation` makes of a and b has more than 32 bits.
FN bool is_too_large(uint operation, int a, int b) {
    const uint x = uint(a), y = uint(b);
    // Two of one sign with a sum of the other.
    if (operation == BINARY_ADD) return ((x ^ (x + y)) & (y ^ (x + y))) >= 0x80000000u;
    if (operation == BINARY_SUB) return ((x ^ y) & (x ^ (x - y))) >= 0x80000000u;
    if (operation == BINARY_MUL) return is_product_too_large(a, b);
    if (operation == BINARY_POW) return is_power_too_large(a, b);
    if (operation == BINARY_DIV) return x == 0x80000000u && b == -1;
    // Of negations.
    return x == 0x80000000u;
}
