//! Executes one lane until it waits for others, or ends.

use crate::arithmetic::{binary, compare, convert, insert_bits, ternary, unary, with_carry};
use crate::coverage::Coverage;
use crate::instruction::{Address, Instruction, Operand, Operation, Register, Special};
use crate::memory::{LOCAL, View, address_of};
use crate::parse::{Function, Module};

/// What a register, and memory of a lane, holds before it is written.
const GARBAGE: u64 = 0xdead_beef;

/// What a lane does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    AtBarrier,
    AtShuffle(Shuffle),
    Finished,
}

/// A shuffle that a lane has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shuffle {
    pub(crate) to: Register,
    pub(crate) found: Option<Register>,
    pub(crate) value: u64,
    pub(crate) mask: u64,
    pub(crate) clamp: u64,
    pub(crate) members: u64,
}

/// Where a lane is in a launch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    pub(crate) lane: u32,
    pub(crate) n_lanes: u32,
    pub(crate) block: u32,
    pub(crate) n_blocks: u32,
}

/// A function that is executed: itself, the next instruction, and where its registers, variables
/// and local memory begin.
#[derive(Debug, Clone, Copy)]
struct Frame {
    function: usize,
    at: usize,
    registers: usize,
    variables: usize,
    local: usize,
    /// Where the caller wants what the function returns.
    result: Option<usize>,
}

/// The place of an instruction in a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) function: usize,
    pub(crate) instruction: usize,
}

/// A lane.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) position: Position,
    pub(crate) state: State,
    registers: Vec<u64>,
    variables: Vec<u64>,
    pub(crate) local: Vec<u8>,
    frames: Vec<Frame>,
    carry: bool,
}

/// A value, and the register that it is for.
struct Computed {
    to: Register,
    value: u64,
}

/// An instruction that must not be executed, with its line.
pub(crate) struct LaneViolation {
    pub(crate) line: u32,
    pub(crate) what: String,
}

impl Lane {
    pub(crate) fn new(module: &Module, kernel: usize, position: Position) -> Self {
        let (registers, variables, local, frames) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut lane = Self { position, state: State::Running, registers, variables, local, frames, carry: false };
        lane.enter(module, kernel, None);
        lane
    }

    fn enter(&mut self, module: &Module, function: usize, result: Option<usize>) {
        let Function { n_registers, n_variables, local_bytes, .. } = module.functions[function];
        let local = self.local.len().next_multiple_of(16);
        let (registers, variables) = (self.registers.len(), self.variables.len());
        self.frames.push(Frame { function, at: 0, registers, variables, local, result });
        self.registers.resize(registers + n_registers, GARBAGE);
        self.variables.resize(variables + n_variables, GARBAGE);
        self.local.resize(local + local_bytes, 0xff);
    }

    /// Returns the place of the instruction that the lane waits at.
    pub(crate) fn place(&self) -> Option<Place> {
        self.frames.last().map(|frame| Place { function: frame.function, instruction: frame.at })
    }

    /// Returns the line of the next instruction.
    pub(crate) fn line(&self, module: &Module) -> u32 {
        let instruction =
            self.frames.last().and_then(|frame| module.functions[frame.function].instructions.get(frame.at));
        instruction.map_or(0, |instruction| instruction.line)
    }

    /// Continues after a barrier.
    pub(crate) fn pass(&mut self) {
        self.state = State::Running;
        if let Some(frame) = self.frames.last_mut() {
            frame.at += 1;
        }
    }

    /// Continues after a shuffle.
    pub(crate) fn receive(&mut self, shuffle: Shuffle, value: u64, is_found: bool) {
        self.set(shuffle.to, value);
        if let Some(found) = shuffle.found {
            self.set(found, u64::from(is_found));
        }
        self.pass();
    }

    fn set(&mut self, register: Register, value: u64) {
        let base = self.frames.last().map_or(0, |frame| frame.registers);
        self.registers[base + register as usize] = value;
    }

    fn read(&self, frame: Frame, operand: Operand) -> u64 {
        match operand {
            Operand::Register(register) => self.registers[frame.registers + register as usize],
            Operand::Value(value) => value,
            Operand::Local(offset) => address_of(LOCAL, frame.local as u64 + offset),
            Operand::Special(special) => u64::from(match special {
                Special::Lane => self.position.lane,
                Special::Lanes => self.position.n_lanes,
                Special::Block => self.position.block,
                Special::Blocks => self.position.n_blocks,
            }),
        }
    }

    fn read_all<const N: usize>(&self, frame: Frame, operands: [Operand; N]) -> [u64; N] {
        operands.map(|operand| self.read(frame, operand))
    }

    fn address(&self, frame: Frame, address: Address) -> u64 {
        self.read(frame, address.base).wrapping_add(address.offset)
    }

    /// Executes instructions until the lane waits or ends, at most `limit` of them, and returns how
    /// many were executed.
    pub(crate) fn run(
        &mut self,
        module: &Module,
        view: &mut View<'_, '_>,
        coverage: &mut Coverage,
        limit: u64,
    ) -> Result<u64, LaneViolation> {
        let mut n_executed = 0;
        while self.state == State::Running {
            let Some(&frame) = self.frames.last() else {
                self.state = State::Finished;
                break;
            };
            let function = &module.functions[frame.function];
            let Some(instruction) = function.instructions.get(frame.at) else {
                return Err(LaneViolation { line: 0, what: format!("`{}` does not return", function.name) });
            };
            coverage.visit(frame.function, frame.at);
            n_executed += 1;
            let step = if n_executed > limit {
                Err(format!("more than {limit} instructions without an end"))
            } else if self.is_executed(frame, instruction) {
                self.execute(module, frame, &instruction.operation, view)
            } else {
                self.next();
                Ok(())
            };
            step.map_err(|what| LaneViolation { line: instruction.line, what })?;
        }
        Ok(n_executed)
    }

    fn is_executed(&self, frame: Frame, instruction: &Instruction) -> bool {
        instruction
            .guard
            .is_none_or(|guard| (self.read(frame, Operand::Register(guard.register)) != 0) != guard.negated)
    }

    fn next(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.at += 1;
        }
    }

    fn execute(
        &mut self,
        module: &Module,
        frame: Frame,
        operation: &Operation,
        view: &mut View<'_, '_>,
    ) -> Result<(), String> {
        match operation {
            Operation::Branch { target } => self.jump(*target as usize),
            Operation::Return => self.leave(module),
            Operation::Barrier => self.state = State::AtBarrier,
            &Operation::Shuffle { to, found, value, mask, clamp, members } => {
                let [value, mask, clamp, members] = self.read_all(frame, [value, mask, clamp, members]);
                self.state = State::AtShuffle(Shuffle { to, found, value, mask, clamp, members });
            }
            Operation::Call { function, arguments, result } => {
                self.call(module, frame, *function as usize, arguments, *result);
            }
            _ => {
                self.access_or_compute(frame, operation, view)?;
                self.next();
            }
        }
        Ok(())
    }

    fn jump(&mut self, target: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.at = target;
        }
    }

    /// Executes what ends with the next instruction.
    fn access_or_compute(
        &mut self,
        frame: Frame,
        operation: &Operation,
        view: &mut View<'_, '_>,
    ) -> Result<(), String> {
        match operation {
            Operation::Load { space, of, to, address } => {
                let mut address = self.address(frame, *address);
                require_aligned(address, to.len() * of.bytes())?;
                for &register in to {
                    let value = view.load(*space, *of, address, &mut self.local)?;
                    self.set(register, value);
                    address += of.bytes() as u64;
                }
            }
            Operation::Store { space, of, from, address } => {
                let mut address = self.address(frame, *address);
                require_aligned(address, from.len() * of.bytes())?;
                for &operand in from {
                    view.store(*space, *of, address, self.read(frame, operand), &mut self.local)?;
                    address += of.bytes() as u64;
                }
            }
            &Operation::StoreVariable { variable, from } => {
                self.variables[frame.variables + variable as usize] = self.read(frame, from);
            }
            &Operation::Unpack { low, high, from, bits } => {
                let (value, mask) = (self.read(frame, from), (1 << bits) - 1);
                self.set(low, value & mask);
                self.set(high, (value >> bits) & mask);
            }
            _ => {
                let computed = self.computed(frame, operation);
                let unknown = || format!("{operation:?} is not known for this type, or divides by zero");
                let Computed { to, value } = computed.ok_or_else(unknown)?;
                self.set(to, value);
            }
        }
        Ok(())
    }

    /// Returns what an operation on registers gives; None where its type has no such operation.
    fn computed(&mut self, frame: Frame, operation: &Operation) -> Option<Computed> {
        let (to, value) = match *operation {
            Operation::Move { to, from } => (to, self.read(frame, from)),
            Operation::Pack { to, low, high, bits } => {
                let [low, high] = self.read_all(frame, [low, high]);
                (to, low | (high << bits))
            }
            Operation::Unary { operation, of, to, a } => (to, unary(operation, of, self.read(frame, a))?),
            Operation::Binary { operation, of, to, operands, .. } => {
                let [a, b] = self.read_all(frame, operands);
                (to, binary(operation, of, a, b)?)
            }
            Operation::Ternary { operation, of, to, operands } => {
                (to, ternary(operation, of, self.read_all(frame, operands))?)
            }
            Operation::Carry { operation, to, operands, reads, writes } => {
                let carried = with_carry(operation, self.read_all(frame, operands), reads && self.carry);
                self.carry = if writes { carried.carry } else { self.carry };
                (to, carried.value)
            }
            Operation::Compare { comparison, of, to, operands } => {
                let [a, b] = self.read_all(frame, operands);
                (to, u64::from(compare(comparison, of, a, b)))
            }
            Operation::Convert { to_type, from_type, rounding, to, from } => {
                (to, convert(to_type, from_type, rounding, self.read(frame, from))?)
            }
            Operation::InsertBits { of, to, operands } => (to, insert_bits(of, self.read_all(frame, operands))),
            Operation::LoadVariable { to, variable } => (to, self.variables[frame.variables + variable as usize]),
            _ => return None,
        };
        Some(Computed { to, value })
    }

    fn call(&mut self, module: &Module, caller: Frame, function: usize, arguments: &[u32], result: Option<u32>) {
        self.next();
        self.enter(module, function, result.map(|variable| caller.variables + variable as usize));
        let first = self.frames.last().map_or(0, |frame| frame.variables);
        for (index, &argument) in arguments.iter().enumerate() {
            self.variables[first + index] = self.variables[caller.variables + argument as usize];
        }
    }

    fn leave(&mut self, module: &Module) {
        let Some(frame) = self.frames.pop() else { return };
        let returned = module.functions[frame.function].returned;
        if let (Some(result), Some(returned)) = (frame.result, returned) {
            self.variables[result] = self.variables[frame.variables + returned as usize];
        }
        self.registers.truncate(frame.registers);
        self.variables.truncate(frame.variables);
        self.local.truncate(frame.local);
        if self.frames.is_empty() {
            self.state = State::Finished;
        }
    }
}

/// Requires the alignment of a vector, which is that of its whole size.
fn require_aligned(address: u64, bytes: usize) -> Result<(), String> {
    let is_aligned = address.is_multiple_of(bytes as u64);
    is_aligned.then_some(()).ok_or_else(|| format!("{address:#x} is not aligned to {bytes} bytes"))
}
