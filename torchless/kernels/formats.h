// How weights are stored, read two bytes at a time and never expanded in memory.
//
// A format has blocks of LEN weights in WORDS words of 16 bits. A block is shared by PARTS lanes,
// each of which unpacks N weights: those at at(part, 0) to at(part, N - 1); with one vector, DEPTH
// parts are on their way at once. All of these names end with the format's, so that a text with
// OF(unpack) in it is every format's. The scale is widened and multiplied as the format's reference
// implementation does, so that a weight has the same bits on every device. Layouts: the GGUF
// specification's tensor types.

enum { LEN_F32 = 1, WORDS_F32 = 2, PARTS_F32 = 1, N_F32 = 1, DEPTH_F32 = 8 };
FN uint at_F32(uint part, uint i) { return 0u; }
FN void unpack_F32(GLOBAL const ushort* block, uint part, PRIVATE real* weights) {
    weights[0] = real_of_bits(*(GLOBAL const uint*)block);
}

enum { LEN_F16 = 1, WORDS_F16 = 1, PARTS_F16 = 1, N_F16 = 1, DEPTH_F16 = 8 };
FN uint at_F16(uint part, uint i) { return 0u; }
FN void unpack_F16(GLOBAL const ushort* block, uint part, PRIVATE real* weights) { weights[0] = real_of_half(block[0]); }

enum { LEN_BF16 = 1, WORDS_BF16 = 1, PARTS_BF16 = 1, N_BF16 = 1, DEPTH_BF16 = 8 };
FN uint at_BF16(uint part, uint i) { return 0u; }
FN void unpack_BF16(GLOBAL const ushort* block, uint part, PRIVATE real* weights) {
    weights[0] = real_of_bits(uint(block[0]) << 16u);
}

// scale: half, numbers: 32 signed bytes.
enum { LEN_Q8_0 = 32, WORDS_Q8_0 = 17, PARTS_Q8_0 = 16, N_Q8_0 = 2, DEPTH_Q8_0 = 4 };
FN uint at_Q8_0(uint part, uint i) { return 2u * part + i; }
FN void unpack_Q8_0(GLOBAL const ushort* block, uint part, PRIVATE real* weights) {
    const real scale = real_of_half(block[0]);
    const uint numbers = block[1u + part];
    weights[0] = scale * real_of_byte(numbers);
    weights[1] = scale * real_of_byte(numbers >> 8u);
}

// Of 32 numbers of 4 bits in 16 bytes: the first 16 in the low halves of the bytes. A part has two
// bytes.
FN uint nibble_at(uint part, uint i) { return 2u * part + (i & 1u) + 16u * (i >> 1u); }
FN uint nibble(uint numbers, uint i) { return (numbers >> (8u * (i & 1u) + 4u * (i >> 1u))) & 15u; }

// scale: half, numbers around 8.
enum { LEN_Q4_0 = 32, WORDS_Q4_0 = 9, PARTS_Q4_0 = 8, N_Q4_0 = 4, DEPTH_Q4_0 = 4 };
FN uint at_Q4_0(uint part, uint i) { return nibble_at(part, i); }
FN void unpack_Q4_0(GLOBAL const ushort* block, uint part, PRIVATE real* weights) {
    const real scale = real_of_half(block[0]);
    const uint numbers = block[1u + part];
    UNROLLED for (uint i = 0u; i < 4u; ++i) weights[i] = scale * (real_of_small(nibble(numbers, i)) - R(8.0));
}

// scale: half, minimum: half, numbers.
enum { LEN_Q4_1 = 32, WORDS_Q4_1 = 10, PARTS_Q4_1 = 8, N_Q4_1 = 4, DEPTH_Q4_1 = 4 };
FN uint at_Q4_1(uint part, uint i) { return nibble_at(part, i); }
FN void unpack_Q4_1(GLOBAL const ushort* block, uint part, PRIVATE real* weights) {
    const real scale = real_of_half(block[0]), minimum = real_of_half(block[1]);
    const uint numbers = block[2u + part];
    UNROLLED for (uint i = 0u; i < 4u; ++i) {
        const real product = scale * real_of_small(nibble(numbers, i));
        weights[i] = product + minimum;
    }
}

// scale: half, fifth bits: 32 bits, numbers around 16.
enum { LEN_Q5_0 = 32, WORDS_Q5_0 = 11, PARTS_Q5_0 = 8, N_Q5_0 = 4, DEPTH_Q5_0 = 4 };
FN uint at_Q5_0(uint part, uint i) { return nibble_at(part, i); }
FN void unpack_Q5_0(GLOBAL const ushort* block, uint part, PRIVATE real* weights) {
    const real scale = real_of_half(block[0]);
    const uint fifths = uint(block[1]) | (uint(block[2]) << 16u), numbers = block[3u + part];
    UNROLLED for (uint i = 0u; i < 4u; ++i) {
        const uint fifth = (fifths >> nibble_at(part, i)) & 1u;
        weights[i] = scale * (real_of_small(nibble(numbers, i) | (fifth << 4u)) - R(16.0));
    }
}

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
enum { LEN_Q4K = 256, WORDS_Q4K = 72, PARTS_Q4K = 64, N_Q4K = 4, DEPTH_Q4K = 2 };
FN uint at_Q4K(uint part, uint i) { return wide_at(part, i); }
FN void unpack_Q4K(GLOBAL const ushort* block, uint part, PRIVATE real* weights) {
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

// scale: half, minimum: half, groups: 12 bytes, fifth bits: 32 bytes with a bit for each group,
// numbers.
enum { LEN_Q5K = 256, WORDS_Q5K = 88, PARTS_Q5K = 64, N_Q5K = 4, DEPTH_Q5K = 2 };
FN uint at_Q5K(uint part, uint i) { return wide_at(part, i); }
FN void unpack_Q5K(GLOBAL const ushort* block, uint part, PRIVATE real* weights) {
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

// low four bits: 128 bytes, high two bits: 64 bytes, group scales: 16 signed bytes, scale: half.
// Halves of 128 numbers; a half's low bits are in 64 bytes, the first 64 numbers in their low
// halves, and its high bits in 32 bytes, a pair of bits for each quarter of 32 numbers.
enum { LEN_Q6K = 256, WORDS_Q6K = 105, PARTS_Q6K = 64, N_Q6K = 4, DEPTH_Q6K = 2 };
FN uint at_Q6K(uint part, uint i) { return 128u * (part / 32u) + 2u * (part % 32u) + (i & 1u) + 64u * (i >> 1u); }
FN void unpack_Q6K(GLOBAL const ushort* block, uint part, PRIVATE real* weights) {
    const real scale = real_of_half(block[104]);
    const uint numbers = block[part], highs = block[64u + 16u * (part / 32u) + part % 16u];
    UNROLLED for (uint i = 0u; i < 4u; ++i) {
        const uint quarter = (part % 32u) / 16u + 2u * (i >> 1u);
        const uint high = (highs >> (8u * (i & 1u) + 2u * quarter)) & 3u;
        const real factor = scale * real_of_byte(byte_of(block, 192u + at_Q6K(part, i) / 16u));
        weights[i] = factor * (real_of_small(nibble(numbers, i) | (high << 4u)) - R(32.0));
    }
}
