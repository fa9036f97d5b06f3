// How weights are stored, read two bytes at a time and never expanded in memory.
//
// A format has blocks of LEN weights in WORDS words of 16 bits. A block is shared by PARTS lanes,
// each of which unpacks N weights: those at at(part, 0) to at(part, N - 1); with one vector, DEPTH
// parts are on their way at once. The scale is widened and multiplied as the format's reference
// implementation does, so that a weight has the same bits on every device. Layouts: the GGUF
// specification's tensor types.

struct WeightsF32 {
    enum { LEN = 1, WORDS = 2, PARTS = 1, N = 1, DEPTH = 8 };
    FN uint at(uint, uint) { return 0u; }
    FN void unpack(GLOBAL const ushort* block, uint, PRIVATE real* weights) {
        weights[0] = real_of_bits(*(GLOBAL const uint*)block);
    }
};

struct WeightsF16 {
    enum { LEN = 1, WORDS = 1, PARTS = 1, N = 1, DEPTH = 8 };
    FN uint at(uint, uint) { return 0u; }
    FN void unpack(GLOBAL const ushort* block, uint, PRIVATE real* weights) { weights[0] = real_of_half(block[0]); }
};

struct WeightsBf16 {
    enum { LEN = 1, WORDS = 1, PARTS = 1, N = 1, DEPTH = 8 };
    FN uint at(uint, uint) { return 0u; }
    FN void unpack(GLOBAL const ushort* block, uint, PRIVATE real* weights) {
        weights[0] = real_of_bits(uint(block[0]) << 16u);
    }
};

// scale: half, numbers: 32 signed bytes.
struct WeightsQ8_0 {
    enum { LEN = 32, WORDS = 17, PARTS = 16, N = 2, DEPTH = 4 };
    FN uint at(uint part, uint i) { return 2u * part + i; }
    FN void unpack(GLOBAL const ushort* block, uint part, PRIVATE real* weights) {
        const real scale = real_of_half(block[0]);
        const uint numbers = block[1u + part];
        weights[0] = scale * real_of_byte(numbers);
        weights[1] = scale * real_of_byte(numbers >> 8u);
    }
};

// Of 32 numbers of 4 bits in 16 bytes: the first 16 in the low halves of the bytes. A part has two
// bytes.
FN uint nibble_at(uint part, uint i) { return 2u * part + (i & 1u) + 16u * (i >> 1u); }
FN uint nibble(uint numbers, uint i) { return (numbers >> (8u * (i & 1u) + 4u * (i >> 1u))) & 15u; }

// scale: half, numbers around 8.
struct WeightsQ4_0 {
    enum { LEN = 32, WORDS = 9, PARTS = 8, N = 4, DEPTH = 4 };
    FN uint at(uint part, uint i) { return nibble_at(part, i); }
    FN void unpack(GLOBAL const ushort* block, uint part, PRIVATE real* weights) {
        const real scale = real_of_half(block[0]);
        const uint numbers = block[1u + part];
        UNROLLED for (uint i = 0u; i < 4u; ++i) weights[i] = scale * (real_of_small(nibble(numbers, i)) - R(8.0));
    }
};

// scale: half, minimum: half, numbers.
struct WeightsQ4_1 {
    enum { LEN = 32, WORDS = 10, PARTS = 8, N = 4, DEPTH = 4 };
    FN uint at(uint part, uint i) { return nibble_at(part, i); }
    FN void unpack(GLOBAL const ushort* block, uint part, PRIVATE real* weights) {
        const real scale = real_of_half(block[0]), minimum = real_of_half(block[1]);
        const uint numbers = block[2u + part];
        UNROLLED for (uint i = 0u; i < 4u; ++i) {
            const real product = scale * real_of_small(nibble(numbers, i));
            weights[i] = product + minimum;
        }
    }
};

// scale: half, fifth bits: 32 bits, numbers around 16.
struct WeightsQ5_0 {
    enum { LEN = 32, WORDS = 11, PARTS = 8, N = 4, DEPTH = 4 };
    FN uint at(uint part, uint i) { return nibble_at(part, i); }
    FN void unpack(GLOBAL const ushort* block, uint part, PRIVATE real* weights) {
        const real scale = real_of_half(block[0]);
        const uint fifths = uint(block[1]) | (uint(block[2]) << 16u), numbers = block[3u + part];
        UNROLLED for (uint i = 0u; i < 4u; ++i) {
            const uint fifth = (fifths >> nibble_at(part, i)) & 1u;
            weights[i] = scale * (real_of_small(nibble(numbers, i) | (fifth << 4u)) - R(16.0));
        }
    }
};

// Byte `i` of a block.
FN uint byte_of(GLOBAL const ushort* block, uint i) { return (uint(block[i >> 1u]) >> (8u * (i & 1u))) & 0xffu; }

// Scale and minimum of one of the 8 groups of a block of 256, 6 bits each, in the 12 bytes from
// byte 4 on.
FN uint group_scale(GLOBAL const ushort* block, uint group) {
    if (group < 4u) return byte_of(block, 4u + group) & 63u;
    return (byte_of(block, 8u + group) & 15u) | ((byte_of(block, group) >> 6u) << 4u);
}
FN uint group_minimum(GLOBAL const ushort* block, uint group) {
    if (group < 4u) return byte_of(block, 8u + group) & 63u;
    return (byte_of(block, 8u + group) >> 4u) | ((byte_of(block, 4u + group) >> 6u) << 4u);
}

// Of 256 numbers of 4 bits: 64 share 32 bytes, the first 32 of them in the low halves. A part has
// two bytes.
FN uint wide_at(uint part, uint i) { return 64u * (part / 16u) + 2u * (part % 16u) + (i & 1u) + 32u * (i >> 1u); }

// scale: half, minimum: half, groups: 12 bytes, numbers.
struct WeightsQ4K {
    enum { LEN = 256, WORDS = 72, PARTS = 64, N = 4, DEPTH = 2 };
    FN uint at(uint part, uint i) { return wide_at(part, i); }
    FN void unpack(GLOBAL const ushort* block, uint part, PRIVATE real* weights) {
        const real scale = real_of_half(block[0]), minimum = real_of_half(block[1]);
        const uint numbers = block[8u + part];
        UNROLLED for (uint i = 0u; i < 4u; ++i) {
            const uint group = 2u * (part / 16u) + (i >> 1u);
            const real factor = scale * real_of_small(group_scale(block, group));
            const real offset = minimum * real_of_small(group_minimum(block, group));
            const real product = factor * real_of_small(nibble(numbers, i));
            weights[i] = product - offset;
        }
    }
};

// scale: half, minimum: half, groups: 12 bytes, fifth bits: 32 bytes with a bit for each group,
// numbers.
struct WeightsQ5K {
    enum { LEN = 256, WORDS = 88, PARTS = 64, N = 4, DEPTH = 2 };
    FN uint at(uint part, uint i) { return wide_at(part, i); }
    FN void unpack(GLOBAL const ushort* block, uint part, PRIVATE real* weights) {
        const real scale = real_of_half(block[0]), minimum = real_of_half(block[1]);
        const uint fifths = block[8u + part % 16u], numbers = block[24u + part];
        UNROLLED for (uint i = 0u; i < 4u; ++i) {
            const uint group = 2u * (part / 16u) + (i >> 1u);
            const uint fifth = (fifths >> (8u * (i & 1u) + group)) & 1u;
            const real factor = scale * real_of_small(group_scale(block, group));
            const real offset = minimum * real_of_small(group_minimum(block, group));
            const real product = factor * real_of_small(nibble(numbers, i) | (fifth << 4u));
            weights[i] = product - offset;
        }
    }
};

// low four bits: 128 bytes, high two bits: 64 bytes, group scales: 16 signed bytes, scale: half.
// Halves of 128 numbers; a half's low bits are in 64 bytes, the first 64 numbers in their low
// halves, and its high bits in 32 bytes, a pair of bits for each quarter of 32 numbers.
struct WeightsQ6K {
    enum { LEN = 256, WORDS = 105, PARTS = 64, N = 4, DEPTH = 2 };
    FN uint at(uint part, uint i) { return 128u * (part / 32u) + 2u * (part % 32u) + (i & 1u) + 64u * (i >> 1u); }
    FN void unpack(GLOBAL const ushort* block, uint part, PRIVATE real* weights) {
        const real scale = real_of_half(block[104]);
        const uint numbers = block[part], highs = block[64u + 16u * (part / 32u) + part % 16u];
        UNROLLED for (uint i = 0u; i < 4u; ++i) {
            const uint quarter = (part % 32u) / 16u + 2u * (i >> 1u);
            const uint high = (highs >> (8u * (i & 1u) + 2u * quarter)) & 3u;
            const real factor = scale * real_of_byte(byte_of(block, 192u + at(part, i) / 16u));
            weights[i] = factor * (real_of_small(nibble(numbers, i) | (high << 4u)) - R(32.0));
        }
    }
};

// Calls `function<format>(arguments)` for the format that `number` names. Uniform over a launch.
#define WITH_FORMAT(number, function, ...)                                                                             \
    switch (number) {                                                                                                  \
    case FORMAT_F32: function<WeightsF32>(__VA_ARGS__); break;                                                         \
    case FORMAT_F16: function<WeightsF16>(__VA_ARGS__); break;                                                         \
    case FORMAT_BF16: function<WeightsBf16>(__VA_ARGS__); break;                                                       \
    case FORMAT_Q8_0: function<WeightsQ8_0>(__VA_ARGS__); break;                                                       \
    case FORMAT_Q4_0: function<WeightsQ4_0>(__VA_ARGS__); break;                                                       \
    case FORMAT_Q4_1: function<WeightsQ4_1>(__VA_ARGS__); break;                                                       \
    case FORMAT_Q5_0: function<WeightsQ5_0>(__VA_ARGS__); break;                                                       \
    case FORMAT_Q4K: function<WeightsQ4K>(__VA_ARGS__); break;                                                         \
    case FORMAT_Q5K: function<WeightsQ5K>(__VA_ARGS__); break;                                                         \
    case FORMAT_Q6K: function<WeightsQ6K>(__VA_ARGS__); break;                                                         \
    default: break;                                                                                                    \
    }
