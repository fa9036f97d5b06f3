//! Which kernel, and which of its operations, an operator of one number or two is.

use super::kernels::EncoderKernel;
use super::layout::{
    BINARY_ADD, BINARY_AND, BINARY_ATAN2, BINARY_DIV, BINARY_EQUAL, BINARY_GREATER, BINARY_GREATER_OR_EQUAL,
    BINARY_LESS, BINARY_LESS_OR_EQUAL, BINARY_MAX, BINARY_MIN, BINARY_MOD, BINARY_MUL, BINARY_OR, BINARY_POW,
    BINARY_REMAINDER, BINARY_SUB, BINARY_XOR, REDUCE_MAX, REDUCE_MEAN, REDUCE_MIN, REDUCE_NORM, REDUCE_PRODUCT,
    REDUCE_SUM, REDUCE_SUM_OF_SQUARES, UNARY_ABS, UNARY_CEIL, UNARY_COS, UNARY_ERF, UNARY_EXP, UNARY_FLOOR, UNARY_GELU,
    UNARY_GELU_TANH, UNARY_LOG, UNARY_NEG, UNARY_RECIPROCAL, UNARY_RELU, UNARY_SIGMOID, UNARY_SIGN, UNARY_SILU,
    UNARY_SIN, UNARY_SOFTPLUS, UNARY_SQRT, UNARY_TANH,
};
use crate::encoder::graph::{Binary, Reduction, Unary};

/// A kernel and what it does.
pub(super) type Operation = (EncoderKernel, u32);

/// Returns the arithmetic of two numbers of single precision.
pub(super) fn binary_of_reals(binary: Binary) -> Option<Operation> {
    let operation = match binary {
        Binary::Add => BINARY_ADD,
        Binary::Sub => BINARY_SUB,
        Binary::Mul => BINARY_MUL,
        Binary::Div => BINARY_DIV,
        Binary::Max => BINARY_MAX,
        Binary::Min => BINARY_MIN,
        Binary::Pow => BINARY_POW,
        Binary::Mod { follows_dividend: false } => BINARY_MOD,
        _ => return None,
    };
    Some((EncoderKernel::CombineReals, operation))
}

/// Returns the arithmetic of pairs. Of powers the exponent is known.
pub(super) fn binary_of_pairs(binary: Binary, exponent: Option<f64>) -> Option<Operation> {
    let operation = match binary {
        Binary::Add => BINARY_ADD,
        Binary::Atan2 => BINARY_ATAN2,
        Binary::Sub => BINARY_SUB,
        Binary::Mul => BINARY_MUL,
        Binary::Div => BINARY_DIV,
        Binary::Max => BINARY_MAX,
        Binary::Min => BINARY_MIN,
        Binary::Mod { follows_dividend: false } => BINARY_MOD,
        Binary::Pow if exponent == Some(2.0) || exponent == Some(0.5) => BINARY_POW,
        _ => return None,
    };
    Some((EncoderKernel::CombineWide, operation))
}

/// Returns a function of pairs.
pub(super) fn unary_of_pairs(unary: Unary) -> Option<Operation> {
    let operation = match unary {
        Unary::Abs => UNARY_ABS,
        Unary::Floor => UNARY_FLOOR,
        Unary::Log => UNARY_LOG,
        Unary::Neg => UNARY_NEG,
        Unary::Sqrt => UNARY_SQRT,
        _ => return None,
    };
    Some((EncoderKernel::MapWide, operation))
}

fn compared(binary: Binary) -> Option<u32> {
    Some(match binary {
        Binary::Equal => BINARY_EQUAL,
        Binary::Greater => BINARY_GREATER,
        Binary::GreaterOrEqual => BINARY_GREATER_OR_EQUAL,
        Binary::Less => BINARY_LESS,
        Binary::LessOrEqual => BINARY_LESS_OR_EQUAL,
        _ => return None,
    })
}

/// Returns the comparison of two numbers.
pub(super) fn comparison(binary: Binary) -> Option<Operation> {
    compared(binary).map(|operation| (EncoderKernel::CompareReals, operation))
}

/// Returns the arithmetic of two integers, whose results may have more than 32 bits.
pub(super) fn arithmetic_of_ints(binary: Binary) -> Option<u32> {
    Some(match binary {
        Binary::Add => BINARY_ADD,
        Binary::Sub => BINARY_SUB,
        Binary::Mul => BINARY_MUL,
        Binary::Div => BINARY_DIV,
        Binary::Mod { follows_dividend: false } => BINARY_MOD,
        Binary::Mod { follows_dividend: true } => BINARY_REMAINDER,
        Binary::Pow => BINARY_POW,
        _ => return None,
    })
}

/// Returns a function of integers.
pub(super) fn unary_of_ints(unary: Unary) -> Option<u32> {
    Some(match unary {
        Unary::Abs => UNARY_ABS,
        Unary::Neg => UNARY_NEG,
        Unary::Relu => UNARY_RELU,
        Unary::Sign => UNARY_SIGN,
        _ => return None,
    })
}

/// Returns what is made of two integers and has never more bits.
pub(super) fn binary_of_ints(binary: Binary) -> Option<Operation> {
    let operation = match binary {
        Binary::And => BINARY_AND,
        Binary::Or => BINARY_OR,
        Binary::Xor => BINARY_XOR,
        Binary::Max => BINARY_MAX,
        Binary::Min => BINARY_MIN,
        _ => compared(binary)?,
    };
    Some((EncoderKernel::CombineInts, operation))
}

/// Returns a function of single precision.
pub(super) fn unary_of_reals(unary: Unary) -> Option<Operation> {
    let operation = match unary {
        Unary::Abs => UNARY_ABS,
        Unary::Ceil => UNARY_CEIL,
        Unary::Cos => UNARY_COS,
        Unary::Erf => UNARY_ERF,
        Unary::Exp => UNARY_EXP,
        Unary::Floor => UNARY_FLOOR,
        Unary::Gelu => UNARY_GELU,
        Unary::GeluTanh => UNARY_GELU_TANH,
        Unary::Log => UNARY_LOG,
        Unary::Neg => UNARY_NEG,
        Unary::Reciprocal => UNARY_RECIPROCAL,
        Unary::Relu => UNARY_RELU,
        Unary::Sigmoid => UNARY_SIGMOID,
        Unary::Sign => UNARY_SIGN,
        Unary::Silu => UNARY_SILU,
        Unary::Sin => UNARY_SIN,
        Unary::Softplus => UNARY_SOFTPLUS,
        Unary::Sqrt => UNARY_SQRT,
        Unary::Tanh => UNARY_TANH,
        Unary::Atan | Unary::IsNan | Unary::Not => return None,
    };
    Some((EncoderKernel::MapReals, operation))
}

/// Returns how rows are reduced.
pub(super) fn reduction(reduction: Reduction) -> u32 {
    match reduction {
        Reduction::Max => REDUCE_MAX,
        Reduction::Mean => REDUCE_MEAN,
        Reduction::Min => REDUCE_MIN,
        Reduction::Product => REDUCE_PRODUCT,
        Reduction::Sum => REDUCE_SUM,
        Reduction::SumOfSquares => REDUCE_SUM_OF_SQUARES,
        Reduction::Norm => REDUCE_NORM,
    }
}
