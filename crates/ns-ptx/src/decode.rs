//! Decodes one instruction.

use crate::instruction::{
    Address, Binary, CarryOperation, Comparison, Guard, Kind, Operand, Operation, Rounding, Space, Ternary, Type, Unary,
};
use crate::parse::Body;

/// An instruction whose branch, if it is one, is not yet resolved.
pub(crate) struct Decoded {
    pub(crate) operation: Operation,
    pub(crate) guard: Option<Guard>,
    pub(crate) branch_to: Option<String>,
}

/// Decodes an instruction of `body`, which may call `callable`.
pub(crate) fn decode(text: &str, body: &Body, callable: &[String]) -> Result<Decoded, String> {
    let (guard, text) = match text.strip_prefix('@') {
        None => (None, text),
        Some(rest) => {
            let (predicate, rest) = rest.split_once(char::is_whitespace).ok_or("a predicate without an instruction")?;
            let negated = predicate.starts_with('!');
            (Some(Guard { register: body.register(predicate.trim_start_matches('!'))?, negated }), rest.trim_start())
        }
    };
    let (opcode, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let parts: Vec<&str> = opcode.split('.').collect();
    let decoder = Decoder { body, opcode, parts: &parts, operands: split(rest) };
    if parts[0] == "bra" {
        // The target is known once the whole body is read.
        let branch_to = Some(decoder.text(0)?.to_owned());
        return Ok(Decoded { operation: Operation::Branch { target: 0 }, guard, branch_to });
    }
    let operation = if parts[0] == "call" { decoder.call(callable)? } else { decoder.operation()? };
    Ok(Decoded { operation, guard, branch_to: None })
}

/// Splits operands at the commas outside of brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, character) in text.char_indices() {
        match character {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                found.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text.trim().is_empty() {
        found.push(text[start..].trim());
    }
    found
}

struct Decoder<'a> {
    body: &'a Body,
    opcode: &'a str,
    parts: &'a [&'a str],
    operands: Vec<&'a str>,
}

impl Decoder<'_> {
    fn text(&self, index: usize) -> Result<&str, String> {
        self.operands.get(index).copied().ok_or_else(|| format!("`{}` lacks an operand", self.opcode))
    }

    fn to(&self) -> Result<u32, String> {
        self.body.register(self.text(0)?)
    }

    fn operand(&self, index: usize, of: Type) -> Result<Operand, String> {
        self.body.operand(self.text(index)?, of)
    }

    /// Returns the operands after the first, which are N.
    fn sources<const N: usize>(&self, of: Type) -> Result<[Operand; N], String> {
        self.require_operands(N + 1)?;
        let mut sources = [Operand::Value(0); N];
        for (index, source) in (1..).zip(&mut sources) {
            *source = self.operand(index, of)?;
        }
        Ok(sources)
    }

    /// Returns the type at the end of the opcode.
    fn of(&self) -> Result<Type, String> {
        let last = self.parts.last().copied().unwrap_or_default();
        Type::named(last).ok_or_else(|| self.unknown())
    }

    fn unknown(&self) -> String {
        format!("`{}` is not an instruction that is known here", self.opcode)
    }

    fn has(&self, part: &str) -> bool {
        self.parts.contains(&part)
    }

    fn require_operands(&self, n: usize) -> Result<(), String> {
        let is_right = self.operands.len() == n;
        is_right.then_some(()).ok_or_else(|| format!("`{}` has {} operands, not {n}", self.opcode, self.operands.len()))
    }

    /// Requires that each part between the name and the types is one that is executed.
    fn require_known_parts(&self) -> Result<(), String> {
        let known: &[&str] = match self.parts[0] {
            "add" | "sub" if self.of()?.kind != Kind::Float => &["cc"],
            "addc" | "subc" => &["cc"],
            "add" | "sub" | "div" | "sqrt" => &["rn"],
            "mul" => &["rn", "lo", "hi", "wide"],
            "mad" | "madc" => &["lo", "hi", "wide", "cc"],
            "fma" => &["rn", "rm"],
            "rcp" => &["rn", "approx", "ftz"],
            "ex2" => &["approx", "ftz"],
            "cvta" => &["to", "global", "local"],
            "ld" => &["global", "shared", "local", "param", "nc", "v2", "v4"],
            "st" => &["global", "shared", "local", "param", "v2", "v4"],
            // Their own decoders look at each part.
            "bar" | "cvt" | "setp" | "shfl" => return Ok(()),
            _ => &[],
        };
        let between = self.parts.get(1..self.parts.len() - 1).unwrap_or_default();
        if between.iter().all(|part| known.contains(part)) { Ok(()) } else { Err(self.unknown()) }
    }

    fn operation(&self) -> Result<Operation, String> {
        self.require_known_parts()?;
        match self.parts[0] {
            "ret" => Ok(Operation::Return),
            "bar" if self.parts == ["bar", "sync"] && self.operands == ["0"] => Ok(Operation::Barrier),
            "mov" => self.mov(),
            // Every space has its own addresses here.
            "cvta" => Ok(Operation::Move { to: self.to()?, from: self.operand(1, self.of()?)? }),
            "cvt" => self.convert(),
            "ld" => self.load(),
            "st" => self.store(),
            "setp" => self.compare(),
            "shfl" if self.parts == ["shfl", "sync", "bfly", "b32"] => self.shuffle(),
            "bfi" => {
                let of = self.of()?;
                Ok(Operation::InsertBits { of, to: self.to()?, operands: self.sources(of)? })
            }
            _ => self.arithmetic(),
        }
    }

    fn arithmetic(&self) -> Result<Operation, String> {
        if let Some(operation) = self.carry()? {
            return Ok(operation);
        }
        let (of, to) = (self.of()?, self.to()?);
        if let Some(operation) = self.unary() {
            let [a] = self.sources(of)?;
            return Ok(Operation::Unary { operation, of, to, a });
        }
        if let Some(operation) = self.binary(of) {
            let may_fuse = of.kind == Kind::Float && !self.has("rn");
            return Ok(Operation::Binary { operation, of, to, operands: self.sources(of)?, may_fuse });
        }
        let operation = match self.parts[0] {
            "fma" if self.has("rn") => Ternary::Fma,
            "fma" if self.has("rm") && of.bits == 32 => Ternary::FmaDown,
            "mad" if self.has("lo") => Ternary::MadLow,
            "mad" if self.has("wide") => Ternary::MadWide,
            "selp" => Ternary::Select,
            _ => return Err(self.unknown()),
        };
        let mut operands = self.sources(of)?;
        if operation == Ternary::MadWide {
            operands[2] = self.operand(3, Type { bits: 2 * of.bits, ..of })?;
        }
        Ok(Operation::Ternary { operation, of, to, operands })
    }

    fn unary(&self) -> Option<Unary> {
        Some(match self.parts[0] {
            "abs" => Unary::Abs,
            "neg" => Unary::Neg,
            "not" => Unary::Not,
            "sqrt" if self.has("rn") => Unary::Sqrt,
            "rcp" if self.has("rn") => Unary::Reciprocal,
            "rcp" if self.has("approx") && self.has("ftz") => Unary::ReciprocalApproximate,
            "ex2" if self.has("approx") && self.has("ftz") => Unary::Exp2Approximate,
            "clz" => Unary::CountLeadingZeros,
            _ => return None,
        })
    }

    fn binary(&self, of: Type) -> Option<Binary> {
        let is_float = of.kind == Kind::Float;
        Some(match self.parts[0] {
            "add" => Binary::Add,
            "sub" => Binary::Sub,
            "mul" if is_float => Binary::Mul,
            "mul" if self.has("lo") => Binary::MulLow,
            "mul" if self.has("hi") => Binary::MulHigh,
            "mul" if self.has("wide") => Binary::MulWide,
            "div" if is_float == self.has("rn") => Binary::Div,
            "rem" if !is_float => Binary::Rem,
            "min" => Binary::Min,
            "max" => Binary::Max,
            "and" => Binary::And,
            "or" => Binary::Or,
            "xor" => Binary::Xor,
            "shl" => Binary::ShiftLeft,
            "shr" => Binary::ShiftRight,
            _ => return None,
        })
    }

    /// Decodes what reads or writes the carry flag.
    fn carry(&self) -> Result<Option<Operation>, String> {
        let (base, writes) = (self.parts[0], self.has("cc"));
        let reads = matches!(base, "addc" | "subc" | "madc");
        if !reads && !writes {
            return Ok(None);
        }
        let of = self.of()?;
        if of.bits != 32 {
            return Err(self.unknown());
        }
        let operation = match base {
            "add" | "addc" => CarryOperation::Add,
            "sub" | "subc" => CarryOperation::Sub,
            "mad" | "madc" if self.has("lo") => CarryOperation::MadLow,
            "mad" | "madc" if self.has("hi") => CarryOperation::MadHigh,
            _ => return Err(self.unknown()),
        };
        let is_product = matches!(operation, CarryOperation::MadLow | CarryOperation::MadHigh);
        self.require_operands(if is_product { 4 } else { 3 })?;
        let third = if is_product { self.operand(3, of)? } else { Operand::Value(0) };
        let operands = [self.operand(1, of)?, self.operand(2, of)?, third];
        Ok(Some(Operation::Carry { operation, to: self.to()?, operands, reads, writes }))
    }

    fn mov(&self) -> Result<Operation, String> {
        self.require_operands(2)?;
        let of = self.of()?;
        let (to, from) = (self.text(0)?, self.text(1)?);
        if let Some(halves) = braced(to) {
            let [low, high] = pair(&halves)?;
            let (low, high) = (self.body.register(low)?, self.body.register(high)?);
            return Ok(Operation::Unpack { low, high, from: self.operand(1, of)?, bits: of.bits / 2 });
        }
        let to = self.to()?;
        if let Some(halves) = braced(from) {
            let [low, high] = pair(&halves)?;
            let half = Type { kind: Kind::Bits, bits: of.bits / 2 };
            let (low, high) = (self.body.operand(low, half)?, self.body.operand(high, half)?);
            return Ok(Operation::Pack { to, low, high, bits: half.bits });
        }
        Ok(Operation::Move { to, from: self.operand(1, of)? })
    }

    fn convert(&self) -> Result<Operation, String> {
        let (rounding, types) = match self.parts {
            [_, to, from] => ("", [*to, *from]),
            [_, rounding, to, from] => (*rounding, [*to, *from]),
            _ => return Err(self.unknown()),
        };
        let [Some(to_type), Some(from_type)] = types.map(Type::named) else { return Err(self.unknown()) };
        let rounding = match rounding {
            "" => Rounding::None,
            "rn" => Rounding::Nearest,
            "rni" => Rounding::NearestInteger,
            "rmi" => Rounding::Down,
            "rzi" => Rounding::TowardsZero,
            "sat" => Rounding::Saturate,
            _ => return Err(self.unknown()),
        };
        Ok(Operation::Convert { to_type, from_type, rounding, to: self.to()?, from: self.operand(1, from_type)? })
    }

    fn compare(&self) -> Result<Operation, String> {
        let of = self.of()?;
        if self.parts.len() != 3 {
            return Err(self.unknown());
        }
        let comparison = match (self.parts.get(1).copied().unwrap_or_default(), of.kind == Kind::Float) {
            ("eq", _) => Comparison::Equal,
            ("ne", _) => Comparison::NotEqual,
            ("lt", _) => Comparison::Less,
            ("le", _) => Comparison::LessEqual,
            ("gt", _) => Comparison::Greater,
            ("ge", _) => Comparison::GreaterEqual,
            ("equ", true) => Comparison::EqualOrNan,
            ("neu", true) => Comparison::NotEqualOrNan,
            ("ltu", true) => Comparison::LessOrNan,
            ("leu", true) => Comparison::LessEqualOrNan,
            ("gtu", true) => Comparison::GreaterOrNan,
            ("geu", true) => Comparison::GreaterEqualOrNan,
            ("num", true) => Comparison::Numbers,
            ("nan", true) => Comparison::OneIsNan,
            _ => return Err(self.unknown()),
        };
        Ok(Operation::Compare { comparison, of, to: self.to()?, operands: self.sources(of)? })
    }

    fn shuffle(&self) -> Result<Operation, String> {
        let of = self.of()?;
        let (to, found) = match self.text(0)?.split_once('|') {
            None => (self.text(0)?, None),
            Some((to, found)) => (to, Some(self.body.register(found)?)),
        };
        let to = self.body.register(to)?;
        let [value, mask, clamp, members] = self.sources(of)?;
        Ok(Operation::Shuffle { to, found, value, mask, clamp, members })
    }

    fn load(&self) -> Result<Operation, String> {
        let of = self.of()?;
        self.require_operands(2)?;
        // Their sign would have to be extended.
        if of.kind == Kind::Signed && of.bits < 32 {
            return Err(self.unknown());
        }
        let inner = self.address_text(1)?;
        if let (Some(variable), true) = (self.variable(inner)?, self.has("param")) {
            return Ok(Operation::LoadVariable { to: self.to()?, variable });
        }
        let names = braced(self.text(0)?).unwrap_or_else(|| vec![self.operands[0]]);
        let to = names.into_iter().map(|name| self.body.register(name)).collect::<Result<Vec<_>, _>>()?;
        Ok(Operation::Load { space: self.space()?, of, to, address: self.address(inner)? })
    }

    fn store(&self) -> Result<Operation, String> {
        let of = self.of()?;
        let inner = self.address_text(0)?;
        if let (Some(variable), true) = (self.variable(inner)?, self.has("param")) {
            return Ok(Operation::StoreVariable { variable, from: self.operand(1, of)? });
        }
        let names = braced(self.text(1)?).unwrap_or_else(|| vec![self.operands[1]]);
        let from = names.into_iter().map(|name| self.body.operand(name, of)).collect::<Result<Vec<_>, _>>()?;
        Ok(Operation::Store { space: self.space()?, of, from, address: self.address(inner)? })
    }

    fn space(&self) -> Result<Space, String> {
        Ok(match self.parts.get(1).copied().unwrap_or_default() {
            "global" if self.has("nc") => Space::GlobalReadOnly,
            "global" => Space::Global,
            "shared" => Space::Shared,
            "local" => Space::Local,
            "param" => Space::Parameters,
            _ => return Err(self.unknown()),
        })
    }

    /// Returns what is between the brackets of an address.
    fn address_text(&self, index: usize) -> Result<&str, String> {
        let text = self.text(index)?;
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        inner.map(str::trim).ok_or_else(|| format!("`{text}` is not an address"))
    }

    /// Returns the variable of the function that an address names, which has one element.
    fn variable(&self, address: &str) -> Result<Option<u32>, String> {
        let (name, offset) = address.split_once('+').unwrap_or((address, "0"));
        match self.body.known_variable(name) {
            Some(_) if offset != "0" => Err(format!("`{address}` is inside a variable")),
            found => Ok(found),
        }
    }

    fn address(&self, text: &str) -> Result<Address, String> {
        let (base, offset) = text.split_once('+').unwrap_or((text, "0"));
        let offset: i64 = offset.parse().map_err(|_| format!("`{text}` is not an address"))?;
        let of = Type { kind: Kind::Bits, bits: 64 };
        Ok(Address { base: self.body.operand(base, of)?, offset: offset as u64 })
    }

    fn call(&self, callable: &[String]) -> Result<Operation, String> {
        let (result, name, arguments) = match self.operands[..] {
            [result, name, arguments] => (Some(result), name, arguments),
            [name, arguments] => (None, name, arguments),
            _ => return Err(format!("`{}` is a call that is not understood", self.opcode)),
        };
        let variable = |name: &str| self.body.known_variable(name).ok_or_else(|| format!("`{name}` is not a variable"));
        let list = |text: &str| {
            let names = text.trim_matches(['(', ')']).split(',').map(str::trim).filter(|name| !name.is_empty());
            names.map(variable).collect::<Result<Vec<u32>, String>>()
        };
        let function =
            callable.iter().position(|known| known == name).ok_or_else(|| format!("no function `{name}`"))?;
        let result = result.map(list).transpose()?.and_then(|found| found.first().copied());
        Ok(Operation::Call { function: function as u32, arguments: list(arguments)?, result })
    }
}

/// Returns the names between braces.
fn braced(text: &str) -> Option<Vec<&str>> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    Some(inner.split(',').map(str::trim).collect())
}

fn pair<'a>(names: &[&'a str]) -> Result<[&'a str; 2], String> {
    <[&str; 2]>::try_from(names).map_err(|_| "halves that are not two".to_owned())
}
