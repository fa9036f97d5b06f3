//! Instructions joined by calls that charge for them.
//!
//! The calls are functions whose names begin with a character that no name of a template has.

use std::sync::Arc;

use minijinja::machinery::{Instruction, Instructions};
use minijinja::value::Rest;
use minijinja::{Environment, Error, State, Value, context, escape_formatter};

use super::meter::Meter;
use super::refused;
use super::words::TUPLE;
use crate::text::python::Tuple;

const READ: &str = "\0read";
const SKIM: &str = "\0skim";
const KEEP: &str = "\0keep";
const MEMBER: &str = "\0member";
const PRODUCT: &str = "\0product";
const SLICE: &str = "\0slice";
const FILTER: &str = "\0filter";
const TEST: &str = "\0test";
const TEXT: &str = "\0text";
const REMAINDER: &str = "\0remainder";

/// Gives `environment` the functions that guarded instructions call, and charges for what is
/// written.
pub(super) fn install(environment: &mut Environment<'_>, meter: &Arc<Meter>) {
    // It shows all values that there are, and Hugging Face has none.
    environment.remove_global("debug");
    let of = |one: fn(&Meter, &Value) -> Result<(), Error>| {
        let meter = Arc::clone(meter);
        move |given: Rest<Value>| -> Result<Value, Error> {
            let value = only(&given)?;
            one(&meter, &value)?;
            Ok(value)
        }
    };
    environment.add_function(READ, of(Meter::read));
    environment.add_function(SKIM, of(Meter::skim));
    let made = |one: fn(&Meter, Value) -> Result<Value, Error>| {
        let meter = Arc::clone(meter);
        move |given: Rest<Value>| one(&meter, only(&given)?)
    };
    environment.add_function(KEEP, made(Meter::keep));
    environment.add_function(TEXT, made(|meter, value| meter.text(&value)));
    environment.add_function(TUPLE, |items: Rest<Value>| Value::from_object(Tuple(items.0)));
    environment.add_function(MEMBER, made(Meter::member));
    install_operations(environment, meter);
    let writing = Arc::clone(meter);
    environment.set_formatter(move |out, state, value| escape_formatter(out, state, &writing.text(value)?));
    let methods = Arc::clone(meter);
    environment.set_unknown_method_callback(move |state, value, name, arguments| {
        methods.method(state, value, name, arguments)
    });
}

fn install_operations(environment: &mut Environment<'_>, meter: &Arc<Meter>) {
    let products = Arc::clone(meter);
    environment.add_function(PRODUCT, move |state: &State<'_, '_>, a: Value, b: Value| {
        products.product(&a, &b)?;
        state.env().compile_expression("a * b")?.eval(context! { a, b })
    });
    let remainders = Arc::clone(meter);
    environment.add_function(REMAINDER, move |state: &State<'_, '_>, a: Value, b: Value| match a.as_str() {
        Some(format) => remainders.percent(format, &b),
        None => state.env().compile_expression("a % b")?.eval(context! { a, b }),
    });
    let slices = Arc::clone(meter);
    environment.add_function(
        SLICE,
        move |state: &State<'_, '_>, value: Value, start: Value, stop: Value, step: Value| {
            slices.skim(&value)?;
            slices.keep(
                state
                    .env()
                    .compile_expression("value[start:stop:step]")?
                    .eval(context! { value, start, stop, step })?,
            )
        },
    );
    let filters = Arc::clone(meter);
    environment.add_function(FILTER, move |state: &State<'_, '_>, given: Rest<Value>| {
        let (name, arguments) = with_name(&given)?;
        filters.filter(state, name, arguments)
    });
    let tests = Arc::clone(meter);
    environment.add_function(TEST, move |state: &State<'_, '_>, given: Rest<Value>| {
        let (name, arguments) = with_name(&given)?;
        tests.test(state, name, arguments)
    });
}

fn only(given: &[Value]) -> Result<Value, Error> {
    given.first().cloned().ok_or_else(|| refused("a value is missing"))
}

/// Returns the name that was pushed behind the arguments.
fn with_name(given: &[Value]) -> Result<(&str, &[Value]), Error> {
    let (name, arguments) = given.split_last().ok_or_else(|| refused("a value is missing"))?;
    Ok((name.as_str().unwrap_or_default(), arguments))
}

/// Returns `instructions` with the calls that charge for them.
pub(super) fn guarded<'a>(instructions: &Instructions<'a>) -> Result<Instructions<'a>, Error> {
    let (mut starts, mut all, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    for (at, instruction) in (0..).map_while(|at| instructions.get(at).map(|instruction| (at, instruction))) {
        starts.push(all.len() as u32);
        all.extend(accompanied(instruction)?);
        lines.resize(all.len(), instructions.get_line(at).unwrap_or(0) as u16);
    }
    starts.push(all.len() as u32);
    let mut guarded = Instructions::new(instructions.name(), instructions.source());
    for (mut instruction, line) in all.into_iter().zip(lines) {
        if let Some(target) = target(&mut instruction) {
            *target = starts.get(*target as usize).copied().unwrap_or(u32::MAX);
        }
        guarded.add_with_line(instruction, line);
    }
    Ok(guarded)
}

/// Returns the target of a jump.
fn target<'i>(instruction: &'i mut Instruction<'_>) -> Option<&'i mut u32> {
    match instruction {
        Instruction::Iterate(target)
        | Instruction::Jump(target)
        | Instruction::JumpIfFalse(target)
        | Instruction::JumpIfFalseOrPop(target)
        | Instruction::JumpIfTrueOrPop(target)
        | Instruction::BuildMacro(_, target, _) => Some(target),
        _ => None,
    }
}

/// Returns `instruction` between what charges for it.
fn accompanied<'a>(instruction: &Instruction<'a>) -> Result<Vec<Instruction<'a>>, Error> {
    use Instruction as I;
    let call = |name| I::CallFunction(name, Some(1));
    let [read, skim, keep, text] = [READ, SKIM, KEEP, TEXT].map(call);
    let own = instruction.clone();
    let no_lists = || refused("argument lists (`*arguments`) are not supported here");
    Ok(match instruction {
        I::EmitRaw(text) => vec![I::LoadConst(Value::from_safe_string((*text).to_owned())), I::Emit],
        I::SetAttr(_) => vec![I::Swap, call(MEMBER), I::Swap, own],
        I::GetItem => vec![read, own],
        I::Slice => vec![I::CallFunction(SLICE, Some(4))],
        I::BuildList(_) | I::BuildMap(_) | I::EndCapture | I::CallObject(_) => vec![own, keep],
        I::UnpackList(_) | I::UnpackLists(1) | I::PushLoop(_) | I::FastRecurse => vec![skim, own],
        I::UnpackLists(2) => vec![skim.clone(), I::Swap, skim, I::Swap, own],
        I::UnpackLists(_) | I::ApplyFilter(_, None, _) | I::PerformTest(_, None, _) => return Err(no_lists()),
        I::Add => vec![skim.clone(), I::Swap, skim, I::Swap, own, keep],
        I::Mul => vec![I::CallFunction(PRODUCT, Some(2)), keep],
        I::StringConcat => vec![text.clone(), I::Swap, text, I::Swap, own, keep],
        I::Rem => vec![I::CallFunction(REMAINDER, Some(2)), keep],
        I::Eq | I::Ne | I::Gt | I::Gte | I::Lt | I::Lte | I::In | I::CompareAndPreserve(_) => {
            vec![read.clone(), I::Swap, read, I::Swap, own]
        }
        I::ApplyFilter(name, Some(n), _) => vec![named(name), I::CallFunction(FILTER, Some(n + 1)), keep],
        I::PerformTest(name, Some(n), _) => vec![named(name), I::CallFunction(TEST, Some(n + 1))],
        I::CallFunction("range", _) => vec![own],
        I::CallFunction("loop", _) => vec![skim, own, keep],
        // What they are given becomes what they hold.
        I::CallFunction("namespace" | "dict", Some(1)) => vec![read, own, keep],
        I::CallFunction("namespace" | "dict", Some(2)) => vec![read.clone(), I::Swap, read, I::Swap, own, keep],
        I::CallFunction("namespace" | "dict", None) => return Err(no_lists()),
        I::CallFunction(..) => vec![own, keep],
        I::CallMethod("changed", Some(2)) => vec![read, own],
        I::CallMethod("changed", _) => return Err(refused("`loop.changed` takes one value here")),
        I::CallMethod(..) => vec![own, keep],
        _ => vec![own],
    })
}

/// Loads the name of a filter or a test, in which blanks do not count.
fn named<'a>(name: &str) -> Instruction<'a> {
    Instruction::LoadConst(Value::from(name.replace(|character: char| character.is_ascii_whitespace(), "")))
}
