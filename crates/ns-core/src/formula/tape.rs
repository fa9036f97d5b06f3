//! Flat operations that compute a formula, with its gradient and its Hessian.
//!
//! The gradient is computed by reverse accumulation. The Hessian takes, for each argument x, the
//! derivatives of all operations along x forwards and those of the adjoints backwards: its cost is
//! that of as many gradients as there are arguments. Nothing is allocated per evaluation.
//!
//! Legend: A arguments of the formula, N operations.

use super::derivative;
use super::function::{BinaryFunction, BinaryJet, UnaryFunction};
use super::{Formula, MOST_NODES, Node};
use crate::interpolate::Jet;
use crate::scalar::Scalar;
use std::collections::HashMap;

/// What a name in a formula stands for.
#[derive(Debug, Clone, Copy)]
pub enum Argument<'a> {
    /// The parameter with this index.
    Parameter(u32),
    /// Another formula.
    Formula(&'a Formula),
    /// A constant.
    Constant(f64),
}

/// The largest number of formulas that name each other in a chain.
pub(super) const MOST_CHAINED: usize = 100;

/// Why a formula cannot be computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TapeError {
    /// It has too many operations, with those of the formulas that it names.
    TooLong,
    /// The chain of formulas that it names is too long.
    TooDeep,
    /// It names itself, directly or through other formulas.
    Cycle,
}

/// The operations of a formula of A parameters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tape {
    /// The parameters, ascending (A).
    arguments: Vec<u32>,
    /// The operations (N); names are indices into `arguments`. The last one is the result.
    nodes: Vec<Node>,
}

/// A formula's value, gradient and Hessian.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Expansion {
    /// f
    pub value: f64,
    /// ∂f/∂x (A)
    pub gradient: Vec<f64>,
    /// ∂²f/∂x∂y (A × A), row by row; zero if it was not asked for.
    pub hessian: Vec<f64>,
}

impl Expansion {
    /// Returns memory for a tape.
    #[must_use]
    pub fn for_tape(tape: &Tape) -> Self {
        let n = tape.arguments.len();
        Self { value: 0.0, gradient: vec![0.0; n], hessian: vec![0.0; n * n] }
    }

    /// Returns whether all of its numbers are finite.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        self.value.is_finite() && self.gradient.iter().chain(&self.hessian).all(|x| x.is_finite())
    }
}

/// Memory for the evaluation of tapes.
#[derive(Debug, Clone, Default)]
pub struct TapeScratch {
    values: Vec<f64>,
    jets: Vec<BinaryJet>,
    tangents: Vec<f64>,
    adjoints: Vec<f64>,
    adjoint_tangents: Vec<f64>,
}

impl Tape {
    /// Returns the tape of `formula`, with `resolve` to say what a name stands for.
    ///
    /// # Errors
    /// A formula that names itself, and one that is too long.
    pub fn new<'a>(formula: &'a Formula, resolve: &impl Fn(&str) -> Argument<'a>) -> Result<Self, TapeError> {
        let mut builder = Builder { nodes: Vec::new(), open: Vec::new(), done: HashMap::new(), resolve };
        builder.add(formula)?;
        let mut nodes = builder.nodes;
        let mut arguments: Vec<u32> =
            nodes.iter().filter_map(|node| if let Node::Name(param) = node { Some(*param) } else { None }).collect();
        arguments.sort_unstable();
        arguments.dedup();
        for node in &mut nodes {
            if let Node::Name(param) = node {
                *param = arguments.partition_point(|argument| argument < param) as u32;
            }
        }
        Ok(Self { arguments, nodes })
    }

    /// Returns the parameters that the formula depends on, ascending (A).
    #[must_use]
    pub fn arguments(&self) -> &[u32] {
        &self.arguments
    }

    /// Returns the parameter that the formula is, if it is one and nothing else.
    #[must_use]
    pub fn as_parameter(&self) -> Option<u32> {
        match self.nodes.as_slice() {
            [Node::Name(argument)] => Some(self.arguments[*argument as usize]),
            _ => None,
        }
    }

    /// Returns whether the formula is a constant plus constants times parameters.
    #[must_use]
    pub fn is_linear(&self) -> bool {
        self.degree() < 2
    }

    /// Returns the degree of the formula as a polynomial of its parameters; 3 if it is higher, or
    /// if it is not written as a polynomial.
    #[must_use]
    pub fn degree(&self) -> u8 {
        let mut degrees: Vec<u8> = Vec::with_capacity(self.nodes.len());
        let of_constant = |degree: u8| if degree == 0 { 0 } else { 3 };
        for node in &self.nodes {
            let degree = |i: u32| degrees[i as usize];
            let of_node: u8 = match *node {
                Node::Number(_) => 0,
                Node::Name(_) => 1,
                Node::Unary(UnaryFunction::Negate | UnaryFunction::Power(1.0), a) => degree(a),
                Node::Unary(UnaryFunction::Power(2.0), a) => 2 * degree(a),
                Node::Unary(_, a) => of_constant(degree(a)),
                Node::Binary(BinaryFunction::Add | BinaryFunction::Subtract, a, b) => degree(a).max(degree(b)),
                Node::Binary(BinaryFunction::Multiply, a, b) => degree(a) + degree(b),
                Node::Binary(BinaryFunction::Divide, a, b) if degree(b) == 0 => degree(a),
                Node::Binary(_, a, b) => of_constant(degree(a).max(degree(b))),
                Node::Select(a, b, c) => of_constant(degree(a).max(degree(b)).max(degree(c))),
            };
            degrees.push(of_node.min(3));
        }
        degrees.last().copied().unwrap_or(0)
    }

    /// Returns whether the formula may have an infinite derivative where its value is finite, such
    /// as a square root at zero.
    #[must_use]
    pub fn may_be_steep(&self) -> bool {
        let constant = |i: u32| if let Node::Number(x) = self.nodes[i as usize] { Some(x) } else { None };
        self.nodes.iter().any(|node| match *node {
            Node::Number(_) | Node::Name(_) | Node::Select(..) => false,
            Node::Unary(function, _) => match function {
                UnaryFunction::Log
                | UnaryFunction::Log10
                | UnaryFunction::Sqrt
                | UnaryFunction::Tan
                | UnaryFunction::Asin
                | UnaryFunction::Acos => true,
                UnaryFunction::Power(exponent) => exponent < 0.0 || exponent.fract() != 0.0,
                _ => false,
            },
            Node::Binary(function, a, b) => match function {
                BinaryFunction::Divide => constant(b).is_none(),
                BinaryFunction::Power => constant(a).is_none_or(|base| base <= 0.0),
                BinaryFunction::Atan2 => true,
                _ => false,
            },
        })
    }

    /// Returns the value at `params` (P), for any number type: the reference implementation.
    #[must_use]
    pub fn evaluate<S: Scalar>(&self, params: &[S]) -> S {
        self.values(params).pop().unwrap_or_else(|| S::from(f64::NAN))
    }

    /// Returns the values of all operations at `params` (P).
    fn values<S: Scalar>(&self, params: &[S]) -> Vec<S> {
        let mut values: Vec<S> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let value = |i: u32| values[i as usize].clone();
            values.push(match *node {
                Node::Number(number) => S::from(number),
                Node::Name(argument) => params[self.arguments[argument as usize] as usize].clone(),
                Node::Unary(function, a) => unary(function, &value(a)),
                Node::Binary(function, a, b) => binary(function, value(a), value(b)),
                Node::Select(condition, yes, no) => {
                    let condition = value(condition).value();
                    if condition.is_nan() { S::from(f64::NAN) } else { value(if condition == 0.0 { no } else { yes }) }
                }
            });
        }
        values
    }

    /// Returns the value and the gradient (A) at `params` (P), for any number type. Over
    /// [`Taylor`](crate::taylor::Taylor) numbers these are value and gradient along a line, with
    /// their first and second derivatives, so third derivatives of the formula.
    #[must_use]
    pub fn expand<S: Scalar + Copy + PartialEq>(&self, params: &[S]) -> (S, Vec<S>) {
        let (zero, values) = (S::from(0.0), self.values(params));
        let mut adjoints = vec![zero; values.len()];
        if let Some(last) = adjoints.last_mut() {
            *last = S::from(1.0);
        }
        let mut gradient = vec![zero; self.arguments.len()];
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let adjoint = adjoints[i];
            // What the result does not depend on may have derivatives that are not finite.
            if adjoint == zero {
                continue;
            }
            let mut add = |operand: u32, derivative: S| {
                let sum = &mut adjoints[operand as usize];
                *sum = *sum + adjoint * derivative;
            };
            let value = |i: u32| values[i as usize];
            match *node {
                Node::Number(_) => {}
                Node::Name(argument) => gradient[argument as usize] = gradient[argument as usize] + adjoint,
                Node::Unary(function, a) => add(a, derivative::unary(function, value(a), values[i])),
                Node::Binary(function, a, b) => {
                    let [by_a, by_b] = derivative::binary(function, [value(a), value(b)], values[i]);
                    add(a, by_a);
                    add(b, by_b);
                }
                Node::Select(condition, yes, no) => {
                    let is_no = value(condition).value() == 0.0;
                    add(if is_no { no } else { yes }, S::from(1.0));
                }
            }
        }
        (values.last().copied().unwrap_or_else(|| S::from(f64::NAN)), gradient)
    }

    /// Returns the value at `params` (P).
    #[must_use]
    pub fn value(&self, params: &[f64], scratch: &mut TapeScratch) -> f64 {
        let values = &mut scratch.values;
        values.clear();
        for node in &self.nodes {
            let at = |i: u32| values[i as usize];
            let value = match *node {
                Node::Number(number) => number,
                Node::Name(argument) => params[self.arguments[argument as usize] as usize],
                Node::Unary(function, a) => function.value(at(a)),
                Node::Binary(function, a, b) => function.value(at(a), at(b)),
                Node::Select(condition, yes, no) => select(at(condition), at(yes), at(no)),
            };
            values.push(value);
        }
        values.last().copied().unwrap_or(f64::NAN)
    }

    /// Writes value and gradient at `params` (P) to `out`.
    pub fn gradient(&self, params: &[f64], scratch: &mut TapeScratch, out: &mut Expansion) {
        out.value = self.forward(params, scratch);
        self.reverse(scratch);
        out.gradient.fill(0.0);
        for (node, adjoint) in self.nodes.iter().zip(&scratch.adjoints) {
            if let Node::Name(argument) = node {
                out.gradient[*argument as usize] += adjoint;
            }
        }
    }

    /// Writes value, gradient and Hessian at `params` (P) to `out`.
    pub fn hessian(&self, params: &[f64], scratch: &mut TapeScratch, out: &mut Expansion) {
        self.gradient(params, scratch, out);
        out.hessian.fill(0.0);
        let n = self.arguments.len();
        for row in 0..n {
            self.tangents(row as u32, scratch);
            self.reverse_tangents(scratch);
            for (node, derivative) in self.nodes.iter().zip(&scratch.adjoint_tangents) {
                if let Node::Name(argument) = node {
                    out.hessian[row * n + *argument as usize] += derivative;
                }
            }
        }
    }

    /// Computes the operations and their derivatives, and returns the result.
    fn forward(&self, params: &[f64], scratch: &mut TapeScratch) -> f64 {
        let result = self.value(params, scratch);
        let TapeScratch { values, jets, .. } = scratch;
        let at = |i: u32| values[i as usize];
        jets.clear();
        jets.extend(self.nodes.iter().map(|node| match *node {
            Node::Number(_) | Node::Name(_) => BinaryJet::default(),
            Node::Unary(function, a) => {
                let Jet { value, first, second } = function.jet(at(a));
                BinaryJet { value, first: [first, 0.0], second: [second, 0.0, 0.0] }
            }
            Node::Binary(function, a, b) => function.jet(at(a), at(b)),
            Node::Select(condition, ..) => {
                let is_yes = at(condition) != 0.0;
                BinaryJet { value: 0.0, first: [f64::from(is_yes), f64::from(!is_yes)], second: [0.0; 3] }
            }
        }));
        result
    }

    /// Computes the adjoints: the derivatives of the result with respect to each operation.
    fn reverse(&self, scratch: &mut TapeScratch) {
        let TapeScratch { jets, adjoints, .. } = scratch;
        reset(adjoints, self.nodes.len());
        if let Some(last) = adjoints.last_mut() {
            *last = 1.0;
        }
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let (adjoint, [by_a, by_b]) = (adjoints[i], jets[i].first);
            // What the result does not depend on may have derivatives that are not finite.
            if adjoint == 0.0 {
                continue;
            }
            match operands(node) {
                Operands::None => {}
                Operands::One(a) => adjoints[a] += adjoint * by_a,
                Operands::Two(a, b) => {
                    adjoints[a] += product(adjoint, by_a);
                    adjoints[b] += product(adjoint, by_b);
                }
            }
        }
    }

    /// Computes the derivatives of all operations with respect to `argument`.
    fn tangents(&self, argument: u32, scratch: &mut TapeScratch) {
        let TapeScratch { jets, tangents, .. } = scratch;
        tangents.clear();
        for (i, node) in self.nodes.iter().enumerate() {
            let [by_a, by_b] = jets[i].first;
            let term = |derivative: f64, operand: usize| product(derivative, tangents[operand]);
            let tangent = match (node, operands(node)) {
                (Node::Name(name), _) => f64::from(*name == argument),
                (_, Operands::None) => 0.0,
                (_, Operands::One(a)) => term(by_a, a),
                (_, Operands::Two(a, b)) => term(by_a, a) + term(by_b, b),
            };
            tangents.push(tangent);
        }
    }

    /// Computes the derivatives of the adjoints along the tangents.
    fn reverse_tangents(&self, scratch: &mut TapeScratch) {
        let TapeScratch { jets, tangents, adjoints, adjoint_tangents, .. } = scratch;
        reset(adjoint_tangents, self.nodes.len());
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let (adjoint, derivative) = (adjoints[i], adjoint_tangents[i]);
            let BinaryJet { first: [by_a, by_b], second: [aa, ab, bb], .. } = jets[i];
            match operands(node) {
                Operands::None => {}
                Operands::One(a) => {
                    let curve = product(product(aa, tangents[a]), adjoint);
                    adjoint_tangents[a] += product(by_a, derivative) + curve;
                }
                Operands::Two(a, b) => {
                    let curve_a = product(product(aa, tangents[a]) + product(ab, tangents[b]), adjoint);
                    let curve_b = product(product(ab, tangents[a]) + product(bb, tangents[b]), adjoint);
                    adjoint_tangents[a] += product(by_a, derivative) + curve_a;
                    adjoint_tangents[b] += product(by_b, derivative) + curve_b;
                }
            }
        }
    }
}

/// The operands of an operation that its derivatives are for.
enum Operands {
    None,
    One(usize),
    Two(usize, usize),
}

/// Returns the operands of `node`; the condition of a choice is none, because nothing changes with
/// it but at a point.
fn operands(node: &Node) -> Operands {
    match *node {
        Node::Number(_) | Node::Name(_) => Operands::None,
        Node::Unary(_, a) => Operands::One(a as usize),
        Node::Binary(_, a, b) | Node::Select(_, a, b) => Operands::Two(a as usize, b as usize),
    }
}

fn select(condition: f64, yes: f64, no: f64) -> f64 {
    if condition.is_nan() {
        f64::NAN
    } else if condition == 0.0 {
        no
    } else {
        yes
    }
}

/// Returns a · b, and zero if one of them is: what does not change a result may have an infinite
/// derivative.
fn product(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

fn reset(values: &mut Vec<f64>, len: usize) {
    values.clear();
    values.resize(len, 0.0);
}

/// Joins the operations of a formula and of those that it names.
struct Builder<'a, 'r, R> {
    /// Names are indices of parameters.
    nodes: Vec<Node>,
    /// The formulas that are being added.
    open: Vec<&'a Formula>,
    /// The results of the formulas that were added.
    done: HashMap<*const Formula, u32>,
    resolve: &'r R,
}

impl<'a, R: Fn(&str) -> Argument<'a>> Builder<'a, '_, R> {
    /// Adds the operations of `formula`, and returns which of them is the result.
    fn add(&mut self, formula: &'a Formula) -> Result<u32, TapeError> {
        if let Some(result) = self.done.get(&std::ptr::from_ref(formula)) {
            return Ok(*result);
        }
        if self.open.iter().any(|open| std::ptr::eq(*open, formula)) {
            return Err(TapeError::Cycle);
        }
        if self.open.len() == MOST_CHAINED {
            return Err(TapeError::TooDeep);
        }
        self.open.push(formula);
        let names = formula.names.iter().map(|name| self.add_name(name)).collect::<Result<Vec<u32>, _>>()?;
        let mut places = vec![0; formula.nodes.len()];
        let used = used(&formula.nodes);
        for i in (0..places.len()).filter(|&i| used[i]) {
            let at = |operand: u32| places[operand as usize];
            places[i] = match formula.nodes[i] {
                Node::Name(name) => names[name as usize],
                Node::Number(number) => self.push(Node::Number(number))?,
                Node::Unary(function, a) => self.push(Node::Unary(function, at(a)))?,
                Node::Binary(function, a, b) => self.add_binary(function, [at(a), at(b)])?,
                Node::Select(a, b, c) => self.push(Node::Select(at(a), at(b), at(c)))?,
            };
        }
        self.open.pop();
        let result = places.last().copied().unwrap_or_default();
        self.done.insert(std::ptr::from_ref(formula), result);
        Ok(result)
    }

    /// Adds a function of two operands. A power whose exponent turns out to be a constant is a
    /// function of one, which has derivatives for any base.
    fn add_binary(&mut self, function: BinaryFunction, [a, b]: [u32; 2]) -> Result<u32, TapeError> {
        match (function, self.nodes[a as usize], self.nodes[b as usize]) {
            (_, Node::Number(x), Node::Number(y)) => self.push(Node::Number(function.value(x, y))),
            (BinaryFunction::Power, _, Node::Number(exponent)) => {
                self.push(Node::Unary(UnaryFunction::Power(exponent), a))
            }
            _ => self.push(Node::Binary(function, a, b)),
        }
    }

    fn add_name(&mut self, name: &str) -> Result<u32, TapeError> {
        match (self.resolve)(name) {
            Argument::Parameter(param) => self.push(Node::Name(param)),
            Argument::Constant(value) => self.push(Node::Number(value)),
            Argument::Formula(formula) => self.add(formula),
        }
    }

    fn push(&mut self, node: Node) -> Result<u32, TapeError> {
        if self.nodes.len() == MOST_NODES {
            return Err(TapeError::TooLong);
        }
        self.nodes.push(node);
        Ok(self.nodes.len() as u32 - 1)
    }
}

/// Returns for each of `nodes` whether the last one depends on it.
fn used(nodes: &[Node]) -> Vec<bool> {
    let mut used = vec![false; nodes.len()];
    if let Some(last) = used.last_mut() {
        *last = true;
    }
    for (i, node) in nodes.iter().enumerate().rev() {
        if !used[i] {
            continue;
        }
        match *node {
            Node::Number(_) | Node::Name(_) => {}
            Node::Unary(_, a) => used[a as usize] = true,
            Node::Binary(_, a, b) => [a, b].into_iter().for_each(|i| used[i as usize] = true),
            Node::Select(a, b, c) => [a, b, c].into_iter().for_each(|i| used[i as usize] = true),
        }
    }
    used
}

/// Returns a function of one operand of any number type.
pub(super) fn unary<S: Scalar>(function: UnaryFunction, x: &S) -> S {
    x.chain(function.jet(x.value()))
}

/// Returns a function of two operands of any number type.
fn binary<S: Scalar>(function: BinaryFunction, a: S, b: S) -> S {
    let minus = |x: &S| unary(UnaryFunction::Negate, x);
    match function {
        BinaryFunction::Add => a + b,
        BinaryFunction::Subtract => a + minus(&b),
        BinaryFunction::Multiply => a * b,
        BinaryFunction::Divide => a * unary(UnaryFunction::Power(-1.0), &b),
        BinaryFunction::Power if has_constant_exponent(&a, &b) => unary(UnaryFunction::Power(b.value()), &a),
        BinaryFunction::Power => unary(UnaryFunction::Exp, &(b * unary(UnaryFunction::Log, &a))),
        BinaryFunction::Min | BinaryFunction::Max => {
            let value = function.value(a.value(), b.value());
            if value == a.value() { a } else { b }
        }
        BinaryFunction::Atan2 => angle(a, b),
        BinaryFunction::Less
        | BinaryFunction::LessOrEqual
        | BinaryFunction::Equal
        | BinaryFunction::NotEqual
        | BinaryFunction::And
        | BinaryFunction::Or => S::from(function.value(a.value(), b.value())),
    }
}

/// Returns whether a^b has the derivatives of a power with a constant exponent: if b does not move,
/// or at a = 0, where a^b changes with positive b by less than with a.
pub(super) fn has_constant_exponent<S: Scalar>(a: &S, b: &S) -> bool {
    b.is_constant() || (a.value() == 0.0 && b.value() > 0.0)
}

/// Returns the angle of the point (x, y): the inverse tangent of y/x or of -x/y, whichever is
/// smaller, plus a constant.
fn angle<S: Scalar>(y: S, x: S) -> S {
    let value = y.value().atan2(x.value());
    let ratio = |a: S, b: S| a * unary(UnaryFunction::Power(-1.0), &b);
    let turned = if x.value().abs() > y.value().abs() {
        unary(UnaryFunction::Atan, &ratio(y, x))
    } else {
        unary(UnaryFunction::Atan, &unary(UnaryFunction::Negate, &ratio(x, y)))
    };
    let rest = value - turned.value();
    turned + S::from(rest)
}
