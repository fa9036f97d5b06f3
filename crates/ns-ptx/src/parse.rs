//! Reads PTX: what compilers write for the kernels of this repository, and no more. What is unknown
//! is an error with its line.

use crate::decode::{Decoded, decode};
use crate::instruction::{Instruction, Operand, Operation, Register, Special, Type};
use crate::memory::{GLOBALS, PARAMETERS, SHARED, address_of};
use std::collections::HashMap;

/// A text that is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ParseError {
    /// The line, counted from 1.
    pub line: u32,
    /// What is wrong there.
    pub what: String,
}

/// A parameter of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Where it begins in the kernel's parameters.
    pub offset: usize,
    /// Its size.
    pub bytes: usize,
}

/// A kernel, or a function that kernels call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Whether it can be launched.
    pub is_kernel: bool,
    /// The parameters of a kernel. Those of another function are its first variables.
    pub parameters: Vec<Parameter>,
    /// How many registers it has.
    pub n_registers: usize,
    /// How many variables it has: parameters, what it returns, and what it passes on.
    pub n_variables: usize,
    /// Which variable it returns.
    pub returned: Option<u32>,
    /// Bytes of its local memory.
    pub local_bytes: usize,
    /// What it does.
    pub instructions: Vec<Instruction>,
    /// The instructions at which a basic block begins, ascending.
    pub leaders: Vec<u32>,
}

/// A text of PTX.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Kernels and functions.
    pub functions: Vec<Function>,
    /// The contents of its global variables.
    pub globals: Vec<Vec<u8>>,
}

impl Module {
    /// Reads `text`.
    ///
    /// # Errors
    /// With the line that is not understood.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut parser = Parser::default();
        for (line, statement) in statements(text) {
            parser.line = line;
            parser.take(&statement).map_err(|what| ParseError { line, what })?;
        }
        parser.finish()
    }

    /// Returns the kernel called `name`.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<usize> {
        self.functions.iter().position(|function| function.is_kernel && function.name == name)
    }
}

/// A piece of the text.
#[derive(Debug, PartialEq, Eq)]
enum Statement {
    /// What ends with a semicolon.
    Plain(String),
    /// What precedes the body of a function.
    Header(String),
    Label(String),
    Open,
    Close,
}

/// Cuts a text into statements, each with the line at which it ends.
fn statements(text: &str) -> Vec<(u32, Statement)> {
    let mut found = Vec::new();
    let mut words = String::new();
    for (line, content) in (1..).zip(text.lines()) {
        for character in content.split("//").next().unwrap_or_default().chars() {
            let begun = words.trim();
            let statement = match character {
                '{' if begun.is_empty() => Statement::Open,
                '{' if begun.starts_with(".visible") || begun.starts_with(".func") => {
                    found.push((line, Statement::Header(begun.to_owned())));
                    Statement::Open
                }
                '}' if begun.is_empty() => Statement::Close,
                ';' => Statement::Plain(begun.to_owned()),
                ':' if begun.starts_with('$') => Statement::Label(begun.to_owned()),
                _ => {
                    words.push(character);
                    continue;
                }
            };
            found.push((line, statement));
            words.clear();
        }
        // A directive of a module has no semicolon.
        let is_directive = [".version", ".target", ".address_size"].iter().any(|word| words.trim().starts_with(word));
        if is_directive { words.clear() } else { words.push(' ') }
    }
    found
}

#[derive(Default)]
struct Parser {
    line: u32,
    functions: Vec<Function>,
    globals: Vec<Vec<u8>>,
    /// The addresses of what is declared outside of functions.
    addresses: HashMap<String, u64>,
    /// The functions that kernels call, in the order in which they are announced.
    callable: Vec<String>,
    /// The function whose body is read.
    body: Option<Body>,
}

/// A function whose body is read.
pub(crate) struct Body {
    function: Function,
    /// Registers by name, of the function and of each block in braces that is open.
    scopes: Vec<HashMap<String, Register>>,
    variables: HashMap<String, u32>,
    locals: HashMap<String, u64>,
    addresses: HashMap<String, u64>,
    labels: HashMap<String, u32>,
    /// Where each label is needed: the instruction, the label, and the line.
    branches: Vec<(usize, String, u32)>,
}

impl Parser {
    fn take(&mut self, statement: &Statement) -> Result<(), String> {
        match (statement, &mut self.body) {
            (Statement::Header(header), None) => self.begin(header),
            (Statement::Plain(text), None) => self.declare(text),
            (_, None) => Err("a statement outside of functions".to_owned()),
            (Statement::Open, Some(body)) => {
                body.scopes.push(HashMap::new());
                Ok(())
            }
            (Statement::Close, Some(body)) => {
                body.scopes.pop();
                if body.scopes.is_empty() { self.end() } else { Ok(()) }
            }
            (Statement::Label(name), Some(body)) => {
                body.labels.insert(name.clone(), body.function.instructions.len() as u32);
                Ok(())
            }
            (Statement::Plain(text), Some(body)) if text.starts_with('.') => body.declare(text),
            (Statement::Plain(text), Some(_)) => self.instruction(text),
            (Statement::Header(header), Some(_)) => Err(format!("`{header}` inside a function")),
        }
    }

    /// Begins a function.
    fn begin(&mut self, header: &str) -> Result<(), String> {
        let is_kernel = header.contains(".entry");
        let mut groups = header.match_indices('(').map(|(start, _)| {
            let end = header[start..].find(')').map_or(header.len(), |end| start + end);
            &header[start + 1..end]
        });
        let returned = if is_kernel { None } else { groups.next() };
        let parameters = groups.next().ok_or("a function without parameters")?;
        let before = &header[..header.rfind(parameters).unwrap_or(0).saturating_sub(1)];
        let name = before.split_whitespace().last().ok_or("a function without a name")?.to_owned();
        let mut body = Body::new(name, is_kernel, self.addresses.clone());
        for parameter in parameters.split(',').map(str::trim).filter(|text| !text.is_empty()) {
            body.parameter(parameter)?;
        }
        if let Some(returned) = returned {
            body.function.returned = Some(body.variable(returned)?);
        }
        self.body = Some(body);
        Ok(())
    }

    /// Ends the function whose body is read.
    fn end(&mut self) -> Result<(), String> {
        let Some(mut body) = self.body.take() else { return Ok(()) };
        for (at, label, line) in &body.branches {
            let target = *body.labels.get(label).ok_or_else(|| format!("no label `{label}`, used in line {line}"))?;
            body.function.instructions[*at].operation = Operation::Branch { target };
        }
        body.function.leaders = leaders(&body.function.instructions, body.labels.values().copied());
        self.functions.push(body.function);
        Ok(())
    }

    /// Takes a declaration outside of functions.
    fn declare(&mut self, text: &str) -> Result<(), String> {
        if text.starts_with(".func") {
            let name = text.rsplit_once('(').and_then(|(before, _)| before.split_whitespace().last());
            self.callable.push(name.ok_or("a function without a name")?.to_owned());
            return Ok(());
        }
        let (left, content) = text.split_once('=').map_or((text, None), |(left, right)| (left, Some(right)));
        let declared = Declared::parse(left)?;
        if text.starts_with(".extern .shared") {
            self.addresses.insert(declared.name, address_of(SHARED, 0));
            return Ok(());
        }
        if !text.starts_with(".global") {
            return Err(format!("`{text}` is not understood"));
        }
        let mut bytes = vec![0; declared.bytes()];
        let values = content.unwrap_or_default().trim().trim_matches(['{', '}']);
        let values = values.split(',').map(str::trim).filter(|value| !value.is_empty());
        for (value, slot) in values.zip(bytes.chunks_mut(declared.of.bytes())) {
            let value: u64 = value.parse().map_err(|_| format!("`{value}` is not a number"))?;
            slot.copy_from_slice(&value.to_le_bytes()[..slot.len()]);
        }
        self.addresses.insert(declared.name, address_of(GLOBALS + self.globals.len(), 0));
        self.globals.push(bytes);
        Ok(())
    }

    /// Takes an instruction of the function whose body is read.
    fn instruction(&mut self, text: &str) -> Result<(), String> {
        let Some(body) = &mut self.body else { return Ok(()) };
        let Decoded { operation, guard, branch_to } = decode(text, body, &self.callable)?;
        if let Some(label) = branch_to {
            body.branches.push((body.function.instructions.len(), label, self.line));
        }
        body.function.instructions.push(Instruction { operation, guard, line: self.line });
        Ok(())
    }

    /// Returns the module, with the calls of its functions by their place in it.
    fn finish(mut self) -> Result<Module, ParseError> {
        let fail = |what: String| ParseError { line: self.line, what };
        if let Some(body) = &self.body {
            return Err(fail(format!("`{}` has no end", body.function.name)));
        }
        let mut places = Vec::with_capacity(self.callable.len());
        for name in &self.callable {
            let place = self.functions.iter().position(|function| function.name == *name);
            places.push(place.ok_or_else(|| fail(format!("`{name}` is announced and not there")))? as u32);
        }
        for instruction in self.functions.iter_mut().flat_map(|function| &mut function.instructions) {
            if let Operation::Call { function, .. } = &mut instruction.operation {
                *function = places[*function as usize];
            }
        }
        Ok(Module { functions: self.functions, globals: self.globals })
    }
}

/// A variable as it is declared: `.param .align 8 .b8 name[16]`.
struct Declared {
    of: Type,
    name: String,
    /// The number of elements; None for one without brackets.
    length: Option<usize>,
}

impl Declared {
    fn parse(text: &str) -> Result<Self, String> {
        let unclear = || format!("`{text}` is not a declaration that is understood");
        let words: Vec<&str> = text.split_whitespace().collect();
        let of = words.iter().find_map(|word| Type::named(word.strip_prefix('.')?)).ok_or_else(unclear)?;
        let name = *words.last().ok_or_else(unclear)?;
        let (name, length) = match name.split_once('[') {
            None => (name, None),
            Some((name, length)) => (name, Some(length.trim_end_matches(']').parse().unwrap_or(0))),
        };
        Ok(Self { of, name: name.to_owned(), length })
    }

    fn bytes(&self) -> usize {
        self.of.bytes() * self.length.unwrap_or(1)
    }
}

impl Body {
    fn new(name: String, is_kernel: bool, addresses: HashMap<String, u64>) -> Self {
        let function = Function {
            name,
            is_kernel,
            parameters: Vec::new(),
            n_registers: 0,
            n_variables: 0,
            returned: None,
            local_bytes: 0,
            instructions: Vec::new(),
            leaders: Vec::new(),
        };
        let (scopes, variables, locals) = (Vec::new(), HashMap::new(), HashMap::new());
        Self { function, scopes, variables, locals, addresses, labels: HashMap::new(), branches: Vec::new() }
    }

    /// Adds a parameter: of a kernel at its offset, of another function as a variable.
    fn parameter(&mut self, text: &str) -> Result<(), String> {
        if !self.function.is_kernel {
            return self.variable(text).map(|_| ());
        }
        let declared = Declared::parse(text)?;
        let last = self.function.parameters.last();
        // Constants are structs of numbers of 4 or 8 bytes; pointers have 8.
        let offset = last.map_or(0, |last| (last.offset + last.bytes).next_multiple_of(8));
        self.function.parameters.push(Parameter { offset, bytes: declared.bytes() });
        self.addresses.insert(declared.name, address_of(PARAMETERS, offset as u64));
        Ok(())
    }

    fn variable(&mut self, text: &str) -> Result<u32, String> {
        let declared = Declared::parse(text)?;
        let variable = self.function.n_variables as u32;
        self.function.n_variables += 1;
        self.variables.insert(declared.name, variable);
        Ok(variable)
    }

    /// Takes a declaration inside the function.
    fn declare(&mut self, text: &str) -> Result<(), String> {
        let (directive, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        match directive {
            ".pragma" => Ok(()),
            ".param" => self.variable(rest).map(|_| ()),
            ".local" => {
                let declared = Declared::parse(rest)?;
                let offset = self.function.local_bytes.next_multiple_of(16);
                self.function.local_bytes = offset + declared.bytes();
                self.locals.insert(declared.name, offset as u64);
                Ok(())
            }
            ".reg" => {
                let names = rest.trim_start().split_once(char::is_whitespace).map_or("", |(_, names)| names);
                for name in names.split(',').map(str::trim) {
                    self.registers(name)?;
                }
                Ok(())
            }
            _ => Err(format!("`{text}` is not understood")),
        }
    }

    /// Declares `%r`, or `%r<9>`, which is `%r0` to `%r8`.
    fn registers(&mut self, name: &str) -> Result<(), String> {
        let names: Vec<String> = match name.split_once('<') {
            None => vec![name.to_owned()],
            Some((stem, count)) => {
                let count: usize = count.trim_end_matches('>').parse().map_err(|_| format!("`{name}` is unclear"))?;
                (0..count).map(|number| format!("{stem}{number}")).collect()
            }
        };
        let scope = self.scopes.last_mut().ok_or("registers before the body")?;
        for name in names {
            scope.insert(name, self.function.n_registers as Register);
            self.function.n_registers += 1;
        }
        Ok(())
    }

    /// Returns the register called `name` in the innermost block that has it.
    pub(crate) fn register(&self, name: &str) -> Result<Register, String> {
        let found = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        found.copied().ok_or_else(|| format!("`{name}` is not a register"))
    }

    /// Returns the variable called `name`.
    pub(crate) fn known_variable(&self, name: &str) -> Option<u32> {
        self.variables.get(name).copied()
    }

    /// Returns what an operand of type `of` stands for.
    pub(crate) fn operand(&self, text: &str, of: Type) -> Result<Operand, String> {
        let special = match text {
            "%tid.x" => Some(Special::Lane),
            "%ntid.x" => Some(Special::Lanes),
            "%ctaid.x" => Some(Special::Block),
            "%nctaid.x" => Some(Special::Blocks),
            _ => None,
        };
        if let Some(special) = special {
            return Ok(Operand::Special(special));
        }
        if text.starts_with('%') {
            return self.register(text).map(Operand::Register);
        }
        if let Some(value) = constant(text) {
            return Ok(Operand::Value(of.cut(value)));
        }
        if let Some(&offset) = self.locals.get(text) {
            return Ok(Operand::Local(offset));
        }
        let address = self.addresses.get(text).ok_or_else(|| format!("`{text}` is not known"))?;
        Ok(Operand::Value(*address))
    }
}

/// Returns the bits of a constant: an integer, or the bits of a number after `0f` or `0d`.
fn constant(text: &str) -> Option<u64> {
    if let Some(bits) = text.strip_prefix("0d").or_else(|| text.strip_prefix("0f")) {
        return u64::from_str_radix(bits, 16).ok();
    }
    if let Some(bits) = text.strip_prefix("0x") {
        return u64::from_str_radix(bits, 16).ok();
    }
    text.parse::<i64>().map(|value| value as u64).or_else(|_| text.parse::<u64>()).ok()
}

/// Returns where basic blocks begin: at the first instruction, at labels, and after what may not
/// continue with the next one.
fn leaders(instructions: &[Instruction], labels: impl Iterator<Item = u32>) -> Vec<u32> {
    let ends =
        |instruction: &Instruction| matches!(instruction.operation, Operation::Branch { .. } | Operation::Return);
    let after = (1..).zip(instructions).filter(|(_, instruction)| ends(instruction)).map(|(next, _)| next);
    let mut leaders: Vec<u32> =
        labels.chain(after).chain([0]).filter(|&at| (at as usize) < instructions.len()).collect();
    leaders.sort_unstable();
    leaders.dedup();
    leaders
}
