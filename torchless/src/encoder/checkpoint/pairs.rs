//! Features of pairs of particles, and the layers that make a bias of attention of them.
//!
//! Qu, Li, Qian: arXiv:2202.03772, section 3. Features of (i, j) and (j, i) are the same numbers,
//! so that they are computed once, for j ≤ i.

use serde_json::json;

use super::network::Network;
use super::part::{EPSILON, batch_norm};
use super::{one_of, only};
use crate::encoder::graph::{Binary, Op, Unary, ValueId};
use crate::encoder::kernels::linear::Activation;
use crate::encoder::tensor::{Data, Kind, Tensor};
use crate::error::Error;
use crate::files::hugging_face::Fields;

/// The least number of which a logarithm is taken.
const LEAST: f64 = 1e-8;

/// Adds the bias of pairs of momenta (batch, 4, particles): (batch, the last of `dims`, particles,
/// particles).
pub(super) fn add(
    fields: &Fields<'_>,
    network: &mut Network,
    momenta: ValueId,
    dims: &[usize],
    has_bias: bool,
) -> Result<ValueId, Error> {
    match fields.text("pair_input_type")?.unwrap_or("pp") {
        "pp" => {}
        other => return Err(one_of(fields, "pair_input_type", other, &["pp"])),
    }
    only(fields, "remove_self_pair", &json!(false))?;
    only(fields, "use_pre_activation_pair", &json!(true))?;
    let n_features = fields.size_or("pair_input_dim", Some(4))?;
    if ![1, 3, 4, 5].contains(&n_features) {
        return Err(fields.unexpected("pair_input_dim", "1, 3, 4 or 5", &json!(n_features)));
    }
    "pair_embed".clone_into(&mut network.scope);
    let (rows, columns, places) = places(network, momenta);
    let [first, second] = [rows, columns].map(|indices| network.gather(momenta, 2, indices));
    let features = features(network, first, second, n_features);
    let mut x = batch_norm(network, features, "pair_embed.embed.0", n_features)?;
    let mut inputs = n_features;
    for (index, &outputs) in dims.iter().enumerate() {
        if index > 0 {
            x = network.unary(Unary::Gelu, x);
        }
        x = layer(network, x, 3 * index + 1, [inputs, outputs], has_bias)?;
        inputs = outputs;
    }
    "pair_embed".clone_into(&mut network.scope);
    Ok(network.gather(x, 2, places))
}

/// Returns the first and the second particle of each pair, and the pair of each place of the
/// (particles, particles) matrix: pair i(i + 1)/2 + j is (i, j) with j ≤ i.
fn places(network: &mut Network, momenta: ValueId) -> (ValueId, ValueId, ValueId) {
    let n = network.node("Shape", Op::Shape { start: 2, end: Some(3) }, &[momenta]);
    let square = network.concat(&[n, n], 0);
    let one = Tensor { kind: Kind::Int, shape: vec![1], data: Data::Int(vec![1]) };
    let ones = network.node("ConstantOfShape", Op::ConstantOfShape { value: one.into() }, &[square]);
    let lower = network.node("Trilu", Op::Trilu { is_upper: false }, &[ones]);
    let pairs = network.node("NonZero", Op::NonZero, &[lower]);
    let [rows, columns] = [0, 1].map(|row| {
        let row = network.int(row);
        network.gather(pairs, 0, row)
    });
    let count = network.node("Squeeze", Op::Squeeze, &[n]);
    let column = network.range(count);
    let axis = network.ints(&[1]);
    let row = network.node("Unsqueeze", Op::Unsqueeze, &[column, axis]);
    let greater = network.binary(Binary::Max, row, column);
    let lesser = network.binary(Binary::Min, row, column);
    let (one, two) = (network.int(1), network.int(2));
    let next = network.add(greater, one);
    let twice = network.binary(Binary::Mul, greater, next);
    let before = network.binary(Binary::Div, twice, two);
    (rows, columns, network.add(before, lesser))
}

/// A momentum: pₓ, p_y, p_z and E, each (batch, 1, pairs).
#[derive(Clone, Copy)]
struct Momentum([ValueId; 4]);

impl Momentum {
    fn of(network: &mut Network, momenta: ValueId) -> Momentum {
        Momentum([0, 1, 2, 3].map(|part| network.slice(momenta, 1, part, part + 1)))
    }

    /// Adds or subtracts another one.
    fn with(self, network: &mut Network, binary: Binary, other: Momentum) -> Momentum {
        Momentum([0, 1, 2, 3].map(|part| network.binary(binary, self.0[part], other.0[part])))
    }

    /// Returns the sum of squares of the first `n` parts.
    fn squares(self, network: &mut Network, n: usize) -> ValueId {
        let squares = self.0.map(|part| network.binary(Binary::Mul, part, part));
        squares[1..n].iter().fold(squares[0], |sum, &square| network.add(sum, square))
    }

    fn transverse(self, network: &mut Network) -> ValueId {
        let square = self.squares(network, 2);
        network.unary(Unary::Sqrt, square)
    }

    /// Returns E² - p².
    fn mass_squared(self, network: &mut Network) -> ValueId {
        let energy = network.binary(Binary::Mul, self.0[3], self.0[3]);
        let square = self.squares(network, 3);
        network.binary(Binary::Sub, energy, square)
    }

    /// Returns ln(1 + 2p_z/max(E - p_z, 10⁻²⁰))/2.
    fn rapidity(self, network: &mut Network) -> ValueId {
        let [_, _, along, energy] = self.0;
        let [least, one, two, half] = [1e-20, 1.0, 2.0, 0.5].map(|value| network.number(value));
        let difference = network.binary(Binary::Sub, energy, along);
        let difference = network.node("Clip", Op::Clip, &[difference, least]);
        let twice = network.binary(Binary::Mul, two, along);
        let quotient = network.binary(Binary::Div, twice, difference);
        let sum = network.add(one, quotient);
        let logarithm = network.unary(Unary::Log, sum);
        network.binary(Binary::Mul, half, logarithm)
    }

    fn angle(self, network: &mut Network) -> ValueId {
        network.binary(Binary::Atan2, self.0[1], self.0[0])
    }
}

/// Returns ln max(x, 10⁻⁸).
fn logarithm(network: &mut Network, x: ValueId) -> ValueId {
    let least = network.number(LEAST);
    let x = network.node("Clip", Op::Clip, &[x, least]);
    network.unary(Unary::Log, x)
}

/// Returns Δ: the root of the squares of the differences of rapidity and of angle, which is brought
/// into -π to π.
fn distance(network: &mut Network, a: Momentum, b: Momentum) -> ValueId {
    use std::f64::consts::PI;

    let [first, second] = [a, b].map(|momentum| momentum.rapidity(network));
    let rapidity = network.binary(Binary::Sub, first, second);
    let [first, second] = [a, b].map(|momentum| momentum.angle(network));
    let angle = network.binary(Binary::Sub, first, second);
    let [half_turn, turn] = [PI, 2.0 * PI].map(|value| network.number(value));
    let angle = network.add(angle, half_turn);
    let angle = network.binary(Binary::Mod { follows_dividend: false }, angle, turn);
    let angle = network.binary(Binary::Sub, angle, half_turn);
    let squares = [rapidity, angle].map(|difference| network.binary(Binary::Mul, difference, difference));
    let sum = network.add(squares[0], squares[1]);
    network.unary(Unary::Sqrt, sum)
}

/// Returns ln k_T, ln z, ln Δ, ln m² and ln of minus the squared difference, or ln Δ alone.
fn features(network: &mut Network, first: ValueId, second: ValueId, n_features: usize) -> ValueId {
    let [a, b] = [first, second].map(|momenta| Momentum::of(network, momenta));
    let distance = distance(network, a, b);
    let ln_distance = logarithm(network, distance);
    if n_features == 1 {
        return ln_distance;
    }
    let [of_a, of_b] = [a, b].map(|momentum| momentum.transverse(network));
    let lesser = network.binary(Binary::Min, of_a, of_b);
    let relative = network.binary(Binary::Mul, lesser, distance);
    let sum = network.add(of_a, of_b);
    let least = network.number(LEAST);
    let sum = network.node("Clip", Op::Clip, &[sum, least]);
    let fraction = network.binary(Binary::Div, lesser, sum);
    let mut features = vec![logarithm(network, relative), logarithm(network, fraction), ln_distance];
    if n_features > 3 {
        let mass = a.with(network, Binary::Add, b).mass_squared(network);
        features.push(logarithm(network, mass));
    }
    if n_features > 4 {
        let square = a.with(network, Binary::Sub, b).mass_squared(network);
        let opposite = network.unary(Unary::Neg, square);
        features.push(logarithm(network, opposite));
    }
    network.concat(&features, 1)
}

/// Adds a layer of single pairs and the normalisation behind it as one product: with
/// f = weight/√(variance + ε), the weights are f·W and the biases f·(bias - mean) + shift.
fn layer(
    network: &mut Network,
    x: ValueId,
    place: usize,
    [inputs, outputs]: [usize; 2],
    has_bias: bool,
) -> Result<ValueId, Error> {
    let name = format!("pair_embed.embed.{place}");
    let norm = format!("pair_embed.embed.{}", place + 1);
    let weights = network.read(&format!("{name}.weight"), &[outputs, inputs, 1])?;
    let bias = match has_bias {
        true => network.read(&format!("{name}.bias"), &[outputs])?,
        false => vec![0.0; outputs],
    };
    let mut part = |part: &str| network.read(&format!("{norm}.{part}"), &[outputs]);
    let (scale, shift) = (part("weight")?, part("bias")?);
    let (mean, variance) = (part("running_mean")?, part("running_var")?);
    network.ignore(&format!("{norm}.num_batches_tracked"));
    let factor = |row: usize| f64::from(scale[row]) / (f64::from(variance[row]) + EPSILON).sqrt();
    let factors: Vec<f64> = (0..outputs).map(factor).collect();
    let scaled = weights.iter().enumerate().map(|(place, &weight)| factors[place / inputs] * f64::from(weight));
    let scaled = scaled.collect();
    let shifted = |row: usize| factors[row] * (f64::from(bias[row]) - f64::from(mean[row])) + f64::from(shift[row]);
    let shifted = (0..outputs).map(shifted).collect();
    network.scope = name;
    let weights = network.numbers(&[outputs, inputs, 1], scaled);
    let bias = network.numbers(&[outputs], shifted);
    let op = Op::Conv { strides: vec![1], activation: Activation::None };
    Ok(network.node("Conv", op, &[x, weights, bias]))
}
