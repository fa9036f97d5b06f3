// Numbers from their bits, each front end in its own words, and the half-precision and small
// numbers that are made of them.

#if defined(__METAL_VERSION__)
FN real real_of_bits(uint bits) { return as_type<float>(bits); }
#elif defined(__CUDACC__) || defined(__CUDACC_RTC__)
typedef unsigned short ushort;
FN real real_of_bits(uint bits) { return real(__uint_as_float(bits)); }
#elif defined(__OPENCL_CPP_VERSION__) || defined(__OPENCL_C_VERSION__)
FN real real_of_bits(uint bits) { return as_float(bits); }
#else
typedef unsigned short ushort;
FN real real_of_bits(uint bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return real(value);
}
#endif

// IEEE half precision, subnormal numbers, infinities and NaN included. No step makes a subnormal
// float, which some devices flush, and none branches: a subnormal number is 2^-14 + m 2^-24 less
// 2^-14.
FN real real_of_half(uint half_bits) {
    const uint exponent = half_bits & 0x7c00u;
    const uint bias = exponent == 0u ? 113u : (exponent == 0x7c00u ? 224u : 112u);
    const real excess = exponent == 0u ? R(6.103515625e-5) : R(0.0);
    const real magnitude = real_of_bits(((half_bits & 0x7fffu) << 13u) + (bias << 23u)) - excess;
    return (half_bits & 0x8000u) == 0u ? magnitude : -magnitude;
}

// A whole number below 2^23: the bits of 2^23 + n, less 2^23. Cheaper than a conversion where those
// are slow.
FN real real_of_small(uint n) { return real_of_bits(0x4b000000u | n) - R(8388608.0); }

// A signed byte.
FN real real_of_byte(uint byte_bits) { return real_of_small((byte_bits & 0xffu) ^ 0x80u) - R(128.0); }
