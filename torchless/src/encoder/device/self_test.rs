//! The self-test of the encoders' kernels before they are used: steps of every kind have the
//! results of the CPU.

use std::sync::Arc;

use ns_device::Device;

use super::EncoderDevice;
use crate::device::{Failure, Verdicts, differs, numbers};
use crate::encoder::graph::{Binary, Reduction, Unary};
use crate::encoder::kernels::linear::{Activation, PackedMatrix};
use crate::encoder::kernels::movement::Running;
use crate::encoder::kernels::{self, Arg, Kernel, KernelScratch};
use crate::encoder::plan::{Plan, Source, Step, Value};
use crate::encoder::run::{EncoderInput, InputValues};
use crate::encoder::storage::WeightStorage;
use crate::encoder::tensor::{Class, Data, Kind, Tensor, View};
use crate::error::{Error, NodeProblem};
use crate::simd::InstructionSet;

static DONE: Verdicts = Verdicts::new();

/// Tests a device the first time in a process, and remembers the verdict.
pub(super) fn once(device: &Device) -> Result<(), Error> {
    DONE.once(device, |device| {
        let there = EncoderDevice::untested(device);
        for case in cases() {
            let (found, expected) = (case.there(&there)?, case.here());
            if let Some(failure) =
                differs(&case.what, &case.parts(&found, &expected), &case.parts(&expected, &expected))
            {
                return Ok(Some(failure));
            }
        }
        takes_what_is_wrong(&there)
    })
}

/// Returns a failure if an index that is out of range, or an integer that is too large, is no
/// error.
fn takes_what_is_wrong(device: &EncoderDevice) -> Result<Option<Failure>, Error> {
    for case in bad_indices().into_iter().chain(large_integers()) {
        match case.there(device) {
            Err(Error::Node { problem: NodeProblem::Index | NodeProblem::DeviceResult, .. }) => {}
            Err(error) => return Err(error),
            Ok(found) => {
                let what = format!("{}, an index or an integer that must not be", case.what);
                return Ok(Some(Failure { what, value: found[0] as f32, expected: f32::NAN }));
            }
        }
    }
    Ok(None)
}

fn bad_indices() -> Vec<Case> {
    let ([plain, _], [rows, columns]) = (views(), SHAPE);
    let mut cases = Vec::new();
    for index in [columns as i64, -(columns as i64) - 1] {
        let args = [(reals(26), plain.clone()), (Data::Int(vec![0, index]), View::contiguous(&[2]))];
        cases.push(Case::new("Gather", Kernel::Gather { axis: 1 }, &args, &[rows, 2], Class::F32));
        let args = [(reals(26), plain.clone()), (Data::Int(vec![0, index]), View::contiguous(&[1, 2]))];
        cases.push(Case::new("GatherElements", Kernel::GatherElements { axis: 1 }, &args, &[1, 2], Class::F32));
        let kernel = Kernel::GatherNd { shape: SHAPE.to_vec(), inner: 1 };
        cases.push(Case::new("GatherND", kernel, &args, &[1], Class::F32));
    }
    cases
}

/// Returns steps whose results exceed 32 bits, by one where that is possible.
fn large_integers() -> Vec<Case> {
    let (most, least) = (i64::from(i32::MAX), i64::from(i32::MIN));
    let of = |what: &str, kernel: Kernel, args: &[i64]| {
        let args: Vec<_> = args.iter().map(|&value| (Data::Int(vec![1, value]), View::contiguous(&[2]))).collect();
        Case::new(what, kernel, &args, &[2], Class::Int)
    };
    let sum = |running: Running| {
        let args = [(Data::Int(vec![1, most, 5]), View::contiguous(&[3]))];
        Case::new("CumSum", Kernel::CumSum { length: 3, inner: 1, running }, &args, &[3], Class::Int)
    };
    let mut cases = vec![
        of("Add", Kernel::Binary(Binary::Add), &[most, 1]),
        of("Add below", Kernel::Binary(Binary::Add), &[least, -1]),
        of("Sub", Kernel::Binary(Binary::Sub), &[least, 1]),
        of("Sub above", Kernel::Binary(Binary::Sub), &[0, least]),
        of("Mul", Kernel::Binary(Binary::Mul), &[1 << 16, 1 << 15]),
        of("Div", Kernel::Binary(Binary::Div), &[least, -1]),
        of("Pow", Kernel::Binary(Binary::Pow), &[2, 31]),
        of("Abs", Kernel::Unary(Unary::Abs), &[least]),
    ];
    cases.extend(DIRECTIONS.map(sum));
    cases
}

/// Every kind of running sum.
const DIRECTIONS: [Running; 4] = [
    Running { is_exclusive: false, is_reversed: false },
    Running { is_exclusive: true, is_reversed: false },
    Running { is_exclusive: false, is_reversed: true },
    Running { is_exclusive: true, is_reversed: true },
];

/// Steps in double precision, which are pairs on the device; differences of numbers that are nearly
/// equal show whether they have the second part.
fn pairs() -> Vec<Case> {
    let ([plain, backwards], mut cases) = (views(), Vec::new());
    let reals = |seed: u32, shift: f64| {
        let low = numbers(LENGTH, seed + 100).into_iter().map(|low| 1e-8 * f64::from(low));
        Data::F64(numbers(LENGTH, seed).into_iter().zip(low).map(|(high, low)| f64::from(high) + low + shift).collect())
    };
    let operators = [
        Binary::Add,
        Binary::Atan2,
        Binary::Sub,
        Binary::Mul,
        Binary::Div,
        Binary::Max,
        Binary::Min,
        Binary::Mod { follows_dividend: false },
    ];
    for binary in operators {
        let divisor = if matches!(binary, Binary::Mod { .. }) { 1.5 } else { 0.0 };
        let args = [(reals(40, 0.0), plain.clone()), (reals(41, divisor), backwards.clone())];
        cases.push(Case::new(&format!("{binary:?} of pairs"), Kernel::Binary(binary), &args, &SHAPE, Class::F64));
    }
    for unary in [Unary::Abs, Unary::Floor, Unary::Neg] {
        let args = [(reals(42, 0.0), backwards.clone())];
        cases.push(Case::new(&format!("{unary:?} of pairs"), Kernel::Unary(unary), &args, &SHAPE, Class::F64));
    }
    for unary in [Unary::Log, Unary::Sqrt] {
        let args = [(reals(43, 1.5), backwards.clone())];
        cases.push(Case::new(&format!("{unary:?} of pairs"), Kernel::Unary(unary), &args, &SHAPE, Class::F64));
    }
    let limit = (Data::F64(vec![0.25]), View { shape: SHAPE.to_vec(), strides: vec![0, 0], offset: 0 });
    for exponent in [2.0, 0.5] {
        let args = [(reals(44, 1.5), backwards.clone()), (Data::F64(vec![exponent]), limit.1.clone())];
        cases.push(Case::new("Pow of pairs", Kernel::Binary(Binary::Pow), &args, &SHAPE, Class::F64));
    }
    for has_lower in [true, false] {
        let args = [(reals(45, 0.0), backwards.clone()), limit.clone()];
        let kernel = Kernel::Clip { has_lower, has_upper: !has_lower };
        cases.push(Case::new("Clip of pairs", kernel, &args, &SHAPE, Class::F64));
    }
    let sum = Kernel::Reduce { reduction: Reduction::Sum, n_kept: 1 };
    cases.push(Case::new("Sum of pairs", sum, &[(reals(46, 0.0), backwards.clone())], &SHAPE[..1], Class::F64));
    let to_float = Kernel::Convert { to: Kind::Float };
    let large = numbers(LENGTH, 48).into_iter().map(|number| (2e9 * f64::from(number)) as i64).collect();
    let args = [(Data::Int(large), backwards.clone())];
    cases.push(Case::new("pairs of integers", to_float.clone(), &args, &SHAPE, Class::F64));
    cases.push(Case::new("numbers of pairs", to_float, &[(reals(47, 0.0), backwards)], &SHAPE, Class::F32));
    cases
}

/// A step, and the numbers that it is given.
struct Case {
    what: String,
    kernel: Kernel,
    args: Vec<(Data, View)>,
    shape: Vec<usize>,
    class: Class,
}

impl Case {
    fn new(what: &str, kernel: Kernel, args: &[(Data, View)], shape: &[usize], class: Class) -> Case {
        let what = format!("a step of an encoder ({what})");
        Case { what, kernel, args: args.to_vec(), shape: shape.to_vec(), class }
    }

    /// Returns numbers in single precision and, of pairs, what the expected ones leave of them, as
    /// large: a device that has no second part of a pair would differ in that.
    fn parts(&self, values: &[f64], expected: &[f64]) -> Vec<Vec<f32>> {
        let scale = if self.class == Class::F64 { (1 << 24) as f64 } else { 0.0 };
        let rest = |(value, expected): (&f64, &f64)| ((value - f64::from(*expected as f32)) * scale) as f32;
        vec![values.iter().map(|&value| value as f32).collect(), values.iter().zip(expected).map(rest).collect()]
    }

    /// Computes it on the CPU.
    fn here(&self) -> Vec<f64> {
        let out_view = View::contiguous(&self.shape);
        let mut out = Data::zeros(self.class, out_view.len());
        let args: Vec<Arg<'_>> = self.args.iter().map(|(data, view)| Arg { data: data.borrow(), view }).collect();
        let isa = InstructionSet::best();
        // Indices are in range here.
        let _ = kernels::run(&self.kernel, isa, &mut KernelScratch::default(), &args, &mut out, &out_view);
        wide(&out)
    }

    /// Computes it on a device: integers are inputs, so that indices are checked there, and numbers
    /// are constants.
    fn there(&self, device: &EncoderDevice) -> Result<Vec<f64>, Error> {
        let (mut buffers, mut inputs, mut args, mut given) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (data, view) in &self.args {
            let source = match data {
                Data::Int(values) => {
                    buffers.push((Class::Int, values.len()));
                    inputs.push(buffers.len() - 1);
                    given.push(EncoderInput { name: "x", shape: &[], values: InputValues::I64(values) });
                    Source::Slot(buffers.len() - 1)
                }
                data => {
                    let shape = vec![data.len()];
                    Source::Constant(Arc::new(Tensor { kind: Kind::Float, shape, data: data.clone() }))
                }
            };
            args.push((source, view.clone()));
        }
        let (out, out_view) = (buffers.len(), View::contiguous(&self.shape));
        buffers.push((self.class, out_view.len()));
        let kind = if self.class == Class::Int { Kind::Int } else { Kind::Float };
        let value = Value { source: Source::Slot(out), view: out_view.clone(), kind, class: self.class };
        let plan = Plan {
            steps: vec![Step { kernel: self.kernel.clone(), args, out, out_view, node: 0 }],
            buffer_of: (0..buffers.len()).collect(),
            buffers,
            inputs,
            outputs: vec![value],
            nodes: vec![("the self-test".into(), self.what.as_str().into())],
            n_bytes: 0,
        };
        let planned = device.plan(&plan)?;
        let outputs = device.run(&plan, &planned, &given.iter().collect::<Vec<_>>())?;
        Ok(outputs.get(&out).map(wide).unwrap_or_default())
    }
}

fn wide(data: &Data) -> Vec<f64> {
    match data {
        Data::F32(values) => values.iter().map(|&value| f64::from(value)).collect(),
        Data::F64(values) => values.clone(),
        Data::Int(values) => values.iter().map(|&value| value as f64).collect(),
    }
}

/// The rows and columns of most cases: longer than a tile and than the lanes of a row.
const SHAPE: [usize; 2] = [19, 70];
const LENGTH: usize = SHAPE[0] * SHAPE[1];
/// As many numbers in three axes, and how they lie with the first axis innermost.
const STACK: [usize; 3] = [7, 19, 10];

fn stack() -> View {
    View { shape: STACK.to_vec(), strides: vec![1, STACK[0] as isize, (STACK[0] * STACK[1]) as isize], offset: 0 }
}

fn reals(seed: u32) -> Data {
    Data::F32(numbers(LENGTH, seed).into_iter().map(|number| 4.0 * number).collect())
}

fn positive(seed: u32) -> Data {
    Data::F32(numbers(LENGTH, seed).into_iter().map(|number| 2.0 + number).collect())
}

fn ints(seed: u32) -> Data {
    Data::Int(numbers(LENGTH, seed).into_iter().map(|number| (3.0 * number) as i64).collect())
}

/// Returns elements side by side, and the same backwards with the axes of another order.
fn views() -> [View; 2] {
    let [rows, columns] = SHAPE;
    let backwards = View { shape: SHAPE.to_vec(), strides: vec![1, -(rows as isize)], offset: (columns - 1) * rows };
    [View::contiguous(&SHAPE), backwards]
}

fn cases() -> Vec<Case> {
    let mut cases = elementwise();
    cases.extend(ints_and_choices());
    cases.extend(arithmetic_of_ints());
    cases.extend(moves());
    cases.extend(named_elements());
    cases.extend(triangles_and_running_sums());
    cases.extend(rows());
    cases.extend(products());
    cases.extend(pairs());
    cases
}

fn elementwise() -> Vec<Case> {
    let ([plain, backwards], mut cases) = (views(), Vec::new());
    let of_any = [
        Unary::Abs,
        Unary::Ceil,
        Unary::Cos,
        Unary::Erf,
        Unary::Exp,
        Unary::Floor,
        Unary::Gelu,
        Unary::GeluTanh,
        Unary::Neg,
        Unary::Relu,
        Unary::Sigmoid,
        Unary::Sign,
        Unary::Silu,
        Unary::Sin,
        Unary::Softplus,
        Unary::Tanh,
    ];
    let of_positive = [Unary::Log, Unary::Reciprocal, Unary::Sqrt];
    let all = of_any.map(|unary| (unary, reals(1))).into_iter().chain(of_positive.map(|unary| (unary, positive(2))));
    for (unary, data) in all {
        let args = [(data, backwards.clone())];
        cases.push(Case::new(&format!("{unary:?}"), Kernel::Unary(unary), &args, &SHAPE, Class::F32));
    }
    let arithmetic = [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div, Binary::Max, Binary::Min, Binary::Pow];
    let arithmetic = arithmetic.into_iter().chain([Binary::Mod { follows_dividend: false }]);
    for binary in arithmetic {
        let args = [(positive(3), plain.clone()), (positive(4), backwards.clone())];
        cases.push(Case::new(&format!("{binary:?}"), Kernel::Binary(binary), &args, &SHAPE, Class::F32));
    }
    let limits = [Data::F32(vec![-0.5]), Data::F32(vec![0.75])];
    let limits = limits.map(|limit| (limit, View { shape: SHAPE.to_vec(), strides: vec![0, 0], offset: 0 }));
    for (has_lower, has_upper) in [(true, true), (true, false), (false, true)] {
        let chosen = limits.iter().zip([has_lower, has_upper]).filter(|(_, is_there)| *is_there);
        let args: Vec<_> =
            [(reals(5), backwards.clone())].into_iter().chain(chosen.map(|(limit, _)| limit.clone())).collect();
        cases.push(Case::new("Clip", Kernel::Clip { has_lower, has_upper }, &args, &SHAPE, Class::F32));
    }
    cases
}

fn ints_and_choices() -> Vec<Case> {
    let ([plain, backwards], mut cases) = (views(), Vec::new());
    let comparisons =
        [Binary::Equal, Binary::Greater, Binary::GreaterOrEqual, Binary::Less, Binary::LessOrEqual].into_iter();
    for binary in comparisons.clone() {
        // Many of the numbers are equal.
        let [a, b] = [6, 7].map(|seed| Data::F32(numbers(LENGTH, seed).iter().map(|x| (3.0 * x).round()).collect()));
        let args = [(a, plain.clone()), (b, backwards.clone())];
        cases.push(Case::new(&format!("{binary:?} of numbers"), Kernel::Binary(binary), &args, &SHAPE, Class::Int));
    }
    for binary in comparisons.chain([Binary::And, Binary::Or, Binary::Xor, Binary::Max, Binary::Min]) {
        let args = [(ints(7), plain.clone()), (ints(8), backwards.clone())];
        cases.push(Case::new(&format!("{binary:?} of integers"), Kernel::Binary(binary), &args, &SHAPE, Class::Int));
    }
    let some_nan = numbers(LENGTH, 9).into_iter().map(|number| if number < 0.0 { f32::NAN } else { number });
    let of_nan = [(Data::F32(some_nan.collect()), backwards.clone())];
    cases.push(Case::new("IsNan", Kernel::Unary(Unary::IsNan), &of_nan, &SHAPE, Class::Int));
    let of_ints = [(ints(10), backwards.clone())];
    cases.push(Case::new("Not", Kernel::Unary(Unary::Not), &of_ints, &SHAPE, Class::Int));
    let to_bool = Kernel::Convert { to: Kind::Bool };
    cases.push(Case::new("truth of integers", to_bool.clone(), &of_ints, &SHAPE, Class::Int));
    cases.push(Case::new("truth of numbers", to_bool, &[(reals(11), backwards.clone())], &SHAPE, Class::Int));
    let to_float = Kernel::Convert { to: Kind::Float };
    cases.push(Case::new("numbers of integers", to_float, &of_ints, &SHAPE, Class::F32));
    let condition = (ints(12), backwards.clone());
    let args = [condition.clone(), (reals(13), plain.clone()), (reals(14), backwards.clone())];
    cases.push(Case::new("Where of numbers", Kernel::Where, &args, &SHAPE, Class::F32));
    let args = [condition, (ints(15), plain), (ints(16), backwards)];
    cases.push(Case::new("Where of integers", Kernel::Where, &args, &SHAPE, Class::Int));
    cases
}

fn arithmetic_of_ints() -> Vec<Case> {
    let ([plain, backwards], mut cases) = (views(), Vec::new());
    let large = |seed: u32| Data::Int(numbers(LENGTH, seed).into_iter().map(|number| (1e3 * number) as i64).collect());
    let follows = |follows_dividend| Binary::Mod { follows_dividend };
    for binary in [Binary::Add, Binary::Sub, Binary::Mul] {
        let args = [(large(50), plain.clone()), (large(51), backwards.clone())];
        cases.push(Case::new(&format!("{binary:?} of integers"), Kernel::Binary(binary), &args, &SHAPE, Class::Int));
    }
    // By numbers that are 0 now and then.
    for binary in [Binary::Div, follows(false), follows(true), Binary::Pow] {
        let args = [(ints(52), plain.clone()), (ints(53), backwards.clone())];
        cases.push(Case::new(&format!("{binary:?} of integers"), Kernel::Binary(binary), &args, &SHAPE, Class::Int));
    }
    // Their limits, which are numbers of single precision.
    let limits = |values: [i64; 2]| (Data::Int(values.to_vec()), View::contiguous(&[2]));
    let args = [limits([-(1 << 16), -2]), limits([1 << 15, 31])];
    cases.push(Case::new("Mul to the least integer", Kernel::Binary(Binary::Mul), &args, &[2], Class::Int));
    cases.push(Case::new(
        "Pow to the least integer",
        Kernel::Binary(Binary::Pow),
        &[limits([-2, 1]), limits([31, 0])],
        &[2],
        Class::Int,
    ));
    let args = [limits([i64::from(i32::MIN), i64::from(i32::MIN)]), limits([1, -(1 << 30)])];
    cases.push(Case::new("Div of the least integer", Kernel::Binary(Binary::Div), &args, &[2], Class::Int));
    for unary in [Unary::Abs, Unary::Neg, Unary::Relu, Unary::Sign] {
        let args = [(large(54), backwards.clone())];
        cases.push(Case::new(&format!("{unary:?} of integers"), Kernel::Unary(unary), &args, &SHAPE, Class::Int));
    }
    cases
}

/// Returns numbers of every class, with one seed.
fn of_every_class(seed: u32) -> [(Data, Class); 3] {
    let pairs = numbers(LENGTH, seed).into_iter().map(|number| f64::from(number) / 3.0).collect();
    [(reals(seed), Class::F32), (ints(seed), Class::Int), (Data::F64(pairs), Class::F64)]
}

fn named_elements() -> Vec<Case> {
    let ([plain, _], [rows, columns], mut cases) = (views(), SHAPE, Vec::new());
    let within = |seed: u32, size: usize, n: usize| {
        let index = |number: f32| (0.99 * number * size as f32) as i64;
        Data::Int(numbers(n, seed).into_iter().map(index).collect())
    };
    for (values, class) in of_every_class(55) {
        for (axis, size) in [(0, rows), (1, columns)] {
            // Fewer than there are values, and in columns.
            let shape = [rows - 3, columns - 5];
            let view = View { shape: shape.to_vec(), strides: vec![1, shape[0] as isize], offset: 0 };
            let args = [(values.clone(), plain.clone()), (within(56, size, shape[0] * shape[1]), view)];
            let what = format!("GatherElements, {class:?}");
            cases.push(Case::new(&what, Kernel::GatherElements { axis }, &args, &shape, class));
        }
        for (width, shape, inner) in [(1, [13, columns], columns), (2, [13, 1], 1)] {
            let tuples = View { shape: vec![13, width], strides: vec![1, 13], offset: 0 };
            let args = [(values.clone(), plain.clone()), (within(57, rows, 13 * width), tuples)];
            let kernel = Kernel::GatherNd { shape: SHAPE.to_vec(), inner };
            cases.push(Case::new(&format!("GatherND, {class:?}"), kernel, &args, &shape, class));
        }
        let shape = [5, 13, 8];
        let args = [
            (values.clone(), View::contiguous(&STACK)),
            (within(59, STACK[1], shape.iter().product()), View::contiguous(&shape)),
        ];
        let what = format!("GatherElements of a stack, {class:?}");
        cases.push(Case::new(&what, Kernel::GatherElements { axis: 1 }, &args, &shape, class));
        let args = [(values, View::contiguous(&STACK)), (within(60, STACK[0], 26), View::contiguous(&[13, 2]))];
        let kernel = Kernel::GatherNd { shape: STACK.to_vec(), inner: STACK[2] };
        cases.push(Case::new(&format!("GatherND of a stack, {class:?}"), kernel, &args, &[13, STACK[2]], class));
    }
    cases
}

fn triangles_and_running_sums() -> Vec<Case> {
    let ([_, backwards], [rows, columns], mut cases) = (views(), SHAPE, Vec::new());
    for (values, class) in of_every_class(58) {
        for view in [backwards.clone(), stack()] {
            let args = [(values.clone(), view.clone())];
            for (is_upper, diagonal) in [(true, 3), (false, -2), (false, i64::MAX), (true, i64::MIN)] {
                let kernel = Kernel::Trilu { is_upper, diagonal };
                cases.push(Case::new(&format!("Trilu, {class:?}"), kernel, &args, &view.shape, class));
            }
        }
        for (view, length, inner) in
            [(backwards.clone(), rows, columns), (backwards.clone(), columns, 1), (stack(), STACK[1], STACK[2])]
        {
            let args = [(values.clone(), view.clone())];
            for running in DIRECTIONS {
                let kernel = Kernel::CumSum { length, inner, running };
                cases.push(Case::new(&format!("CumSum, {class:?}"), kernel, &args, &view.shape, class));
            }
        }
    }
    // The largest integer is not too large.
    let most = i64::from(i32::MAX);
    for (values, is_reversed) in [(vec![most, 1], false), (vec![1, most], true)] {
        let kernel = Kernel::CumSum { length: 2, inner: 1, running: Running { is_exclusive: true, is_reversed } };
        let args = [(Data::Int(values), View::contiguous(&[2]))];
        cases.push(Case::new("CumSum, the largest integer", kernel, &args, &[2], Class::Int));
    }
    cases
}

fn moves() -> Vec<Case> {
    let ([plain, backwards], [rows, columns], mut cases) = (views(), SHAPE, Vec::new());
    // Two tensors side by side, with a column between them.
    let whole = [rows, 2 * columns + 1];
    let beside = |first: usize| View { shape: SHAPE.to_vec(), strides: vec![whole[1] as isize, 1], offset: first };
    let placed = Kernel::Place { parts: vec![beside(0), beside(columns + 1)], fill: Some(3.0) };
    let args = [(reals(17), plain.clone()), (reals(18), backwards.clone())];
    cases.push(Case::new("numbers side by side", placed.clone(), &args, &whole, Class::F32));
    let args = [(ints(19), plain.clone()), (ints(20), backwards.clone())];
    cases.push(Case::new("integers side by side", placed, &args, &whole, Class::Int));
    let indices = || (Data::Int(vec![4, -1, 0, 4, -(columns as i64), 9]), View::contiguous(&[2, 3]));
    let gather = Kernel::Gather { axis: 1 };
    let args = [(reals(21), backwards.clone()), indices()];
    cases.push(Case::new("Gather of numbers", gather.clone(), &args, &[rows, 2, 3], Class::F32));
    cases.push(Case::new("Gather of integers", gather, &[(ints(22), backwards), indices()], &[rows, 2, 3], Class::Int));
    let args = [(reals(23), plain.clone()), indices()];
    let gather = Kernel::Gather { axis: 0 };
    cases.push(Case::new("Gather of rows", gather, &within(args, rows), &[2, 3, columns], Class::F32));
    // Of two updates of one point the last counts.
    let scatter = Kernel::Scatter { points: Arc::new([70, 0, 140, 0]), inner: 5 };
    let args = [(reals(24), plain), (reals(25), View::contiguous(&[4, 5]))];
    cases.push(Case::new("Scatter", scatter, &args, &SHAPE, Class::F32));
    cases
}

/// Takes indices modulo `size`.
fn within(mut args: [(Data, View); 2], size: usize) -> [(Data, View); 2] {
    if let Data::Int(indices) = &mut args[1].0 {
        indices.iter_mut().for_each(|index| *index %= size as i64);
    }
    args
}

fn rows() -> Vec<Case> {
    let ([plain, backwards], [_, length], mut cases) = (views(), SHAPE, Vec::new());
    let reductions = [
        Reduction::Max,
        Reduction::Mean,
        Reduction::Min,
        Reduction::Product,
        Reduction::Sum,
        Reduction::SumOfSquares,
        Reduction::Norm,
    ];
    for reduction in reductions {
        // Products of 70 numbers between 0.9 and 1.1 stay near 1.
        let values = numbers(LENGTH, 26).into_iter().map(|number| 1.0 + 0.1 * number).collect();
        let args = [(Data::F32(values), backwards.clone())];
        let kernel = Kernel::Reduce { reduction, n_kept: 1 };
        cases.push(Case::new(&format!("{reduction:?}"), kernel, &args, &SHAPE[..1], Class::F32));
    }
    for is_logarithm in [false, true] {
        for is_sum in [false, true] {
            let n_args = if is_sum { 2 } else { 1 };
            let args = [(reals(27), backwards.clone()), (reals(28), plain.clone())];
            let kernel = Kernel::Softmax { length, is_logarithm, is_sum };
            cases.push(Case::new("Softmax", kernel, &args[..n_args], &SHAPE, Class::F32));
        }
    }
    for is_rms in [false, true] {
        for n_args in [2, 3] {
            let factor = |seed| (Data::F32(numbers(length, seed)), View::contiguous(&[length]));
            let args = [(reals(29), plain.clone()), factor(30), factor(31)];
            let kernel = Kernel::LayerNorm { epsilon: 1e-3, is_rms, length };
            cases.push(Case::new("a norm", kernel, &args[..n_args], &SHAPE, Class::F32));
        }
    }
    cases
}

fn products() -> Vec<Case> {
    let ([_, backwards], [rows, inner], mut cases) = (views(), SHAPE, Vec::new());
    let (columns, column_view) = (37, View::contiguous(&[SHAPE[1], 37]));
    let weights = PackedMatrix::of(&numbers(inner * columns, 32), &column_view, WeightStorage::F32);
    let activations = [Activation::None, Activation::Gelu, Activation::GeluTanh, Activation::Relu, Activation::Silu];
    if let Ok(weights) = weights.map(Arc::new) {
        for (index, activation) in activations.into_iter().enumerate() {
            let bias = (Data::F32(numbers(columns, 33)), View::contiguous(&[columns]));
            let args = [(reals(34), backwards.clone()), bias];
            let kernel = Kernel::Linear { weights: Arc::clone(&weights), activation };
            // Once without a bias.
            let args = &args[..if index == 0 { 1 } else { 2 }];
            cases.push(Case::new(&format!("a product, {activation:?}"), kernel, args, &[rows, columns], Class::F32));
        }
    }
    // Two matrices with one on the right, of which rows are columns.
    let half = View { shape: vec![2, 9, inner], strides: vec![9 * inner as isize, inner as isize, 1], offset: inner };
    let turned = View { shape: vec![2, inner, rows], strides: vec![0, 1, inner as isize], offset: 0 };
    let args = [(reals(35), half), (reals(36), turned)];
    cases.push(Case::new("MatMul", Kernel::MatMul, &args, &[2, 9, rows], Class::F32));
    let x = View { shape: vec![2, 10, inner / 2], strides: vec![35, 70, 1], offset: 0 };
    let (weights, bias) = (numbers(60, 37), numbers(6, 38));
    let args =
        [(reals(39), x), (Data::F32(weights), View::contiguous(&[6, 10])), (Data::F32(bias), View::contiguous(&[6]))];
    let kernel = Kernel::Pointwise { activation: Activation::Gelu };
    cases.push(Case::new("a convolution", kernel, &args, &[2, 6, inner / 2], Class::F32));
    cases
}
