//! Instructions as they are executed: registers by number, addresses resolved, types explicit.

/// What the bits of an operand are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bits without an interpretation.
    Bits,
    /// An unsigned integer.
    Unsigned,
    /// A signed integer in two's complement.
    Signed,
    /// A number of IEEE 754.
    Float,
    /// A truth value.
    Predicate,
}

/// The type of an instruction: `.f64` is a float of 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Type {
    /// What the bits are.
    pub kind: Kind,
    /// How many there are; 1 for a predicate.
    pub bits: u32,
}

impl Type {
    /// Returns the type that PTX calls `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if name == "pred" {
            return Some(Self { kind: Kind::Predicate, bits: 1 });
        }
        let kind = match name.chars().next()? {
            'b' => Kind::Bits,
            'u' => Kind::Unsigned,
            's' => Kind::Signed,
            'f' => Kind::Float,
            _ => return None,
        };
        let bits = name[1..].parse().ok()?;
        matches!(bits, 8 | 16 | 32 | 64).then_some(Self { kind, bits })
    }

    /// Returns the number of bytes in memory.
    #[must_use]
    pub fn bytes(self) -> usize {
        (self.bits / 8) as usize
    }

    /// Returns the bits of `value` that belong to the type.
    #[must_use]
    pub fn cut(self, value: u64) -> u64 {
        if self.bits >= 64 { value } else { value & ((1 << self.bits) - 1) }
    }
}

/// A register of a function, by number.
pub type Register = u32;

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// A register of the function.
    Register(Register),
    /// A constant, or the address of something that has one for all lanes.
    Value(u64),
    /// The address at this offset in the function's local memory.
    Local(u64),
    /// One of the numbers that tell a lane where it is.
    Special(Special),
}

/// A special register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// The lane in its block.
    Lane,
    /// The lanes of a block.
    Lanes,
    /// The block.
    Block,
    /// The blocks of the launch.
    Blocks,
}

/// An address: a base and an offset in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The base.
    pub base: Operand,
    /// The offset, in two's complement.
    pub offset: u64,
}

/// A state space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// Buffers, and the constants of a module.
    Global,
    /// Buffers through the read-only cache: nothing may write them while the kernel runs.
    GlobalReadOnly,
    /// The memory of a block.
    Shared,
    /// The memory of a lane.
    Local,
    /// The parameters of a kernel.
    Parameters,
}

/// An operation of one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as the opcodes of PTX")]
pub enum Unary {
    Abs,
    Neg,
    Not,
    Sqrt,
    Reciprocal,
    ReciprocalApproximate,
    Exp2Approximate,
    CountLeadingZeros,
}

/// An operation of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as the opcodes of PTX")]
pub enum Binary {
    Add,
    Sub,
    MulLow,
    MulHigh,
    MulWide,
    Mul,
    Div,
    Rem,
    Min,
    Max,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
}

/// An operation of three operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ternary {
    /// a·b + c with one rounding, to nearest.
    Fma,
    /// a·b - c with one rounding, to nearest: no opcode, but what may be fused.
    FmaSubtract,
    /// c - a·b with one rounding, to nearest: no opcode, but what may be fused.
    FmaNegate,
    /// a·b + c with one rounding, downwards.
    FmaDown,
    /// The low half of a·b, plus c.
    MadLow,
    /// a·b in twice as many bits, plus c.
    MadWide,
    /// a where c holds, else b.
    Select,
}

/// An operation on the carry flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CarryOperation {
    /// a + b.
    Add,
    /// a - b, with a borrow.
    Sub,
    /// The low half of a·b, plus c.
    MadLow,
    /// The high half of a·b, plus c.
    MadHigh,
}

/// A comparison; those of floats are false for a NaN unless their name says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as the comparisons of PTX")]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    EqualOrNan,
    NotEqualOrNan,
    LessOrNan,
    LessEqualOrNan,
    GreaterOrNan,
    GreaterEqualOrNan,
    Numbers,
    OneIsNan,
}

/// How a conversion rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// Integers among each other: bits are cut, or extended by sign.
    None,
    /// To the nearest value, ties to even.
    Nearest,
    /// To the nearest integer, ties to even.
    NearestInteger,
    /// To the integer below.
    Down,
    /// To the integer towards zero.
    TowardsZero,
    /// To [0, 1], a NaN to 0.
    Saturate,
}

/// What an instruction does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields are named for their role in the instruction")]
pub enum Operation {
    Move {
        to: Register,
        from: Operand,
    },
    /// Cuts a value into halves of the given number of bits.
    Unpack {
        low: Register,
        high: Register,
        from: Operand,
        bits: u32,
    },
    /// Joins halves of the given number of bits.
    Pack {
        to: Register,
        low: Operand,
        high: Operand,
        bits: u32,
    },
    Unary {
        operation: Unary,
        of: Type,
        to: Register,
        a: Operand,
    },
    /// `may_fuse`: without `.rn`, so that a compiler may fuse it with another.
    Binary {
        operation: Binary,
        of: Type,
        to: Register,
        operands: [Operand; 2],
        may_fuse: bool,
    },
    Ternary {
        operation: Ternary,
        of: Type,
        to: Register,
        operands: [Operand; 3],
    },
    Carry {
        operation: CarryOperation,
        to: Register,
        operands: [Operand; 3],
        reads: bool,
        writes: bool,
    },
    Compare {
        comparison: Comparison,
        of: Type,
        to: Register,
        operands: [Operand; 2],
    },
    Convert {
        to_type: Type,
        from_type: Type,
        rounding: Rounding,
        to: Register,
        from: Operand,
    },
    /// `bfi`: inserts the low bits of the first operand into the second.
    InsertBits {
        of: Type,
        to: Register,
        operands: [Operand; 4],
    },
    Load {
        space: Space,
        of: Type,
        to: Vec<Register>,
        address: Address,
    },
    Store {
        space: Space,
        of: Type,
        from: Vec<Operand>,
        address: Address,
    },
    /// Reads a parameter of a function, or what a function returned.
    LoadVariable {
        to: Register,
        variable: u32,
    },
    StoreVariable {
        variable: u32,
        from: Operand,
    },
    Branch {
        target: u32,
    },
    Call {
        function: u32,
        arguments: Vec<u32>,
        result: Option<u32>,
    },
    Return,
    Barrier,
    /// Exchanges values among the lanes of a warp, whose numbers differ by `mask`.
    Shuffle {
        to: Register,
        found: Option<Register>,
        value: Operand,
        mask: Operand,
        clamp: Operand,
        members: Operand,
    },
}

/// A predicate that an instruction depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    /// The register with the predicate.
    pub register: Register,
    /// Whether the instruction is executed where the predicate is false.
    pub negated: bool,
}

/// An instruction with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// What it does.
    pub operation: Operation,
    /// The predicate under which it is executed; always if `None`.
    pub guard: Option<Guard>,
    /// Its line in the text, counted from 1.
    pub line: u32,
}
