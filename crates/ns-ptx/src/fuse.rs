//! Fuses products and sums, as a compiler of PTX may where they are written without `.rn`.

use crate::instruction::{Binary, Operand, Operation, Register, Ternary, Type};
use crate::parse::{Function, Module};
use std::collections::HashMap;

/// A module with fused products.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FusedModule {
    /// The module.
    pub module: Module,
    /// How many products were fused with a sum.
    pub n_fused: usize,
}

/// Returns `module` with each sum of a product, both without `.rn`, fused with probability one
/// half. The same seed fuses the same ones.
#[must_use]
pub fn fuse_at_random(module: &Module, seed: u64) -> FusedModule {
    let mut module = module.clone();
    let mut random = Random(seed);
    let n_fused = module.functions.iter_mut().map(|function| fuse(function, &mut random)).sum();
    FusedModule { module, n_fused }
}

/// Splitmix64.
struct Random(u64);

impl Random {
    fn bit(&mut self) -> bool {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) & 1 != 0
    }
}

/// A product whose factors still have the values that it was made of.
#[derive(Clone, Copy)]
struct Product {
    of: Type,
    factors: [Operand; 2],
}

fn fuse(function: &mut Function, random: &mut Random) -> usize {
    let mut products: HashMap<Register, Product> = HashMap::new();
    let (mut n_fused, mut leaders) = (0, function.leaders.iter().peekable());
    for (at, instruction) in function.instructions.iter_mut().enumerate() {
        if leaders.next_if(|&&leader| leader as usize == at).is_some() {
            products.clear();
        }
        if let Some(fused) = fused(&instruction.operation, &products, random) {
            instruction.operation = fused;
            n_fused += 1;
        }
        for register in written(&instruction.operation) {
            products
                .retain(|&product, known| product != register && !known.factors.contains(&Operand::Register(register)));
        }
        if let Operation::Binary { operation: Binary::Mul, of, to, operands, may_fuse: true } = instruction.operation
            && instruction.guard.is_none()
            && !operands.contains(&Operand::Register(to))
        {
            products.insert(to, Product { of, factors: operands });
        }
    }
    n_fused
}

/// Returns a sum or difference fused with one of its products, or None.
fn fused(operation: &Operation, products: &HashMap<Register, Product>, random: &mut Random) -> Option<Operation> {
    let &Operation::Binary { operation: kind, of, to, operands: [a, b], may_fuse: true } = operation else {
        return None;
    };
    let product = |operand: Operand| match operand {
        Operand::Register(register) => products.get(&register).filter(|product| product.of == of),
        _ => None,
    };
    let (kind, Product { factors: [x, y], .. }, other) = match (kind, product(a), product(b)) {
        (Binary::Add, Some(found), _) => (Ternary::Fma, found, b),
        (Binary::Add, None, Some(found)) => (Ternary::Fma, found, a),
        (Binary::Sub, Some(found), _) => (Ternary::FmaSubtract, found, b),
        (Binary::Sub, None, Some(found)) => (Ternary::FmaNegate, found, a),
        _ => return None,
    };
    random.bit().then_some(Operation::Ternary { operation: kind, of, to, operands: [*x, *y, other] })
}

/// Returns the registers that an operation writes.
fn written(operation: &Operation) -> Vec<Register> {
    match operation {
        Operation::Unpack { low, high, .. } => vec![*low, *high],
        Operation::Load { to, .. } => to.clone(),
        Operation::Shuffle { to, found, .. } => std::iter::once(*to).chain(*found).collect(),
        Operation::Move { to, .. }
        | Operation::Pack { to, .. }
        | Operation::Unary { to, .. }
        | Operation::Binary { to, .. }
        | Operation::Ternary { to, .. }
        | Operation::Carry { to, .. }
        | Operation::Compare { to, .. }
        | Operation::Convert { to, .. }
        | Operation::InsertBits { to, .. }
        | Operation::LoadVariable { to, .. } => vec![*to],
        Operation::Store { .. }
        | Operation::StoreVariable { .. }
        | Operation::Branch { .. }
        | Operation::Call { .. }
        | Operation::Return
        | Operation::Barrier => Vec::new(),
    }
}
