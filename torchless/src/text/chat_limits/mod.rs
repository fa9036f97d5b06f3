//! Limits of chat templates: their length, their steps, and the text and values that they make or
//! read.
//!
//! Templates are programs from untrusted files. minijinja counts instructions (`fuel`), but a
//! single instruction can double a text or compare two long lists. So `guard` puts calls of a
//! [`Meter`] beside every instruction of variable cost: they charge for its operands before it runs
//! and for its result afterwards. Values have a limited size and depth, so displaying, comparing,
//! hashing and dropping one is bounded, too. `source` limits what the compiler itself computes.

mod guard;
mod meter;
mod source;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::machinery::{CodeGenerator, Instructions, Vm, WhitespaceConfig, make_string_output, parse};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Value};

use meter::Meter;

/// The most bytes of a template.
pub(crate) const LONGEST_TEMPLATE: usize = 128 << 10;
/// The most instructions that are executed.
pub(crate) const STEPS: u64 = 5_000_000;
/// The most bytes of text and values that are made and read in all.
pub(crate) const WORK: u64 = 256 << 20;
/// The most bytes of one text or value, and of the rendered text.
pub(crate) const LARGEST: u64 = 16 << 20;
/// How deep lists and maps may be nested.
pub(crate) const DEEPEST: usize = 64;

/// Returns the error of a template that exceeds a limit, or uses what limits cannot be kept for.
fn refused(reason: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, reason.into())
}

/// Renders `template` with the functions and filters of `environment` and Python's methods.
pub(super) fn render(mut environment: Environment<'_>, template: &str, context: Value) -> Result<String, Error> {
    source::check(template)?;
    let template = &*words::in_words_of_the_engine(template);
    let meter = Arc::new(Meter::new(WORK));
    guard::install(&mut environment, &meter);
    environment.set_fuel(Some(STEPS));
    // Local names, so that template, instructions and environment have one lifetime.
    let environment = environment;
    let (instructions, blocks) = compile(template)?;
    let mut text = String::new();
    let done = Vm::new(&environment).eval(
        &instructions,
        context,
        &blocks,
        &mut make_string_output(&mut text),
        AutoEscape::None,
    );
    match done {
        Ok(_) if text.len() as u64 <= LARGEST => Ok(text),
        Ok(_) => Err(refused(format!("the text has more than {} MiB", LARGEST >> 20))),
        Err(error) if error.kind() == ErrorKind::OutOfFuel => {
            Err(refused(format!("the template takes more than {STEPS} steps")))
        }
        Err(error) => Err(error),
    }
}

type Compiled<'a> = (Instructions<'a>, BTreeMap<&'a str, Instructions<'a>>);

/// Compiles `template` and its blocks, and guards the instructions.
fn compile(template: &str) -> Result<Compiled<'_>, Error> {
    const NAME: &str = "<string>";
    let statements = parse(template, NAME, Default::default(), whitespace())?;
    let mut generator = CodeGenerator::new(NAME, template);
    generator.compile_stmt(&statements);
    let (instructions, blocks) = generator.finish();
    let blocks = blocks.into_iter().map(|(name, block)| Ok((name, guard::guarded(&block)?)));
    Ok((guard::guarded(&instructions)?, blocks.collect::<Result<_, Error>>()?))
}

/// Returns Hugging Face's settings of Jinja.
fn whitespace() -> WhitespaceConfig {
    WhitespaceConfig { lstrip_blocks: true, trim_blocks: true, ..WhitespaceConfig::default() }
}
