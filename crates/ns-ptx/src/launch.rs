//! Executes a launch: its blocks one after the other, the lanes of a block in turns between the
//! places where they wait for each other.

use crate::coverage::Coverage;
use crate::lane::{Lane, LaneViolation, Position, State};
use crate::memory::{BUFFERS, Buffer, GlobalMemory, SharedMemory, View, address_of};
use crate::parse::Module;
use crate::recording::{Argument, Recording};

/// The lanes that exchange values.
const WARP: usize = 32;

/// Instructions of one lane between two places where it waits, beyond which it has no end.
const MOST_INSTRUCTIONS: u64 = 1 << 32;

/// In which order lanes take turns, and blocks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneOrder {
    /// The first one first.
    Ascending,
    /// The last one first.
    Descending,
}

/// A launch that did something that a device need not survive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{kernel}`, line {line} of the PTX, block {block}, lane {lane}: {what}")]
pub struct Violation {
    /// The kernel.
    pub kernel: String,
    /// The line of the instruction.
    pub line: u32,
    /// The block.
    pub block: u32,
    /// The lane.
    pub lane: u32,
    /// What is wrong.
    pub what: String,
}

/// What a launch left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The bytes of each argument's buffer; empty for constants.
    pub buffers: Vec<Vec<u8>>,
    /// Instructions that were executed, of all lanes.
    pub n_instructions: u64,
    /// Accesses of buffers and global variables that were checked.
    pub n_accesses: u64,
}

/// Executes a recorded launch.
///
/// # Errors
/// At the first instruction that accesses what it must not: memory out of bounds or not aligned,
/// an input that is written, an output that is read through the read-only cache, shared memory that
/// was not written, a barrier or a shuffle that some lanes do not reach.
pub fn run(
    module: &Module,
    recording: &Recording,
    order: LaneOrder,
    coverage: &mut Coverage,
) -> Result<Outcome, Violation> {
    let fail = |what: String| Violation { kernel: recording.kernel.clone(), line: 0, block: 0, lane: 0, what };
    let kernel = module.kernel(&recording.kernel).ok_or_else(|| fail("is not in the module".to_owned()))?;
    let mut global = GlobalMemory {
        buffers: recording.arguments.iter().map(Buffer::of).collect(),
        globals: &module.globals,
        parameters: parameters(module, kernel, &recording.arguments).map_err(fail)?,
        n_accesses: 0,
    };
    let mut n_instructions = 0;
    for block in ordered(recording.blocks as usize, order) {
        let mut run = Block::new(module, kernel, recording, block as u32);
        n_instructions += run.run(&mut global, order, coverage)?;
    }
    let buffers = global.buffers.into_iter().map(|buffer| buffer.bytes).collect();
    Ok(Outcome { buffers, n_instructions, n_accesses: global.n_accesses })
}

fn ordered(n: usize, order: LaneOrder) -> Vec<usize> {
    match order {
        LaneOrder::Ascending => (0..n).collect(),
        LaneOrder::Descending => (0..n).rev().collect(),
    }
}

/// Returns the bytes of a kernel's parameters: constants as they are, addresses of buffers.
fn parameters(module: &Module, kernel: usize, arguments: &[Argument]) -> Result<Vec<u8>, String> {
    let parameters = &module.functions[kernel].parameters;
    if parameters.len() != arguments.len() {
        return Err(format!("has {} parameters and {} arguments", parameters.len(), arguments.len()));
    }
    let mut bytes = Vec::new();
    for (index, (parameter, argument)) in parameters.iter().zip(arguments).enumerate() {
        bytes.resize(parameter.offset, 0);
        match argument {
            Argument::Constants(constants) if constants.len() == parameter.bytes => bytes.extend_from_slice(constants),
            Argument::Constants(constants) => {
                return Err(format!("parameter {index} has {} bytes, not {}", parameter.bytes, constants.len()));
            }
            Argument::Read(content) | Argument::Written { before: content, .. } => {
                // An empty buffer has no address.
                let address = if content.is_empty() { 0 } else { address_of(BUFFERS + index, 0) };
                bytes.extend_from_slice(&address.to_le_bytes());
            }
        }
    }
    Ok(bytes)
}

/// A block that runs.
struct Block<'a> {
    module: &'a Module,
    recording: &'a Recording,
    number: u32,
    lanes: Vec<Lane>,
    shared: SharedMemory,
}

impl<'a> Block<'a> {
    fn new(module: &'a Module, kernel: usize, recording: &'a Recording, number: u32) -> Self {
        let position = |lane| Position { lane, n_lanes: recording.lanes, block: number, n_blocks: recording.blocks };
        let lanes = (0..recording.lanes).map(|lane| Lane::new(module, kernel, position(lane))).collect();
        let shared = SharedMemory::new((recording.shared_reals * recording.real_bytes) as usize);
        Self { module, recording, number, lanes, shared }
    }

    fn fault(&self, lane: usize, line: u32, what: String) -> Violation {
        Violation { kernel: self.recording.kernel.clone(), line, block: self.number, lane: lane as u32, what }
    }

    /// Runs the lanes to their end and returns how many instructions they executed.
    fn run(
        &mut self,
        global: &mut GlobalMemory<'_>,
        order: LaneOrder,
        coverage: &mut Coverage,
    ) -> Result<u64, Violation> {
        let turns = ordered(self.lanes.len(), order);
        let mut n_executed = 0;
        while self.lanes.iter().any(|lane| lane.state != State::Finished) {
            for &lane in &turns {
                let mut view = View { global: &mut *global, shared: &mut self.shared };
                let ran = self.lanes[lane].run(self.module, &mut view, coverage, MOST_INSTRUCTIONS);
                n_executed += ran.map_err(|LaneViolation { line, what }| self.fault(lane, line, what))?;
            }
            self.release()?;
        }
        Ok(n_executed)
    }

    /// Lets lanes continue that wait at the same barrier, or the same shuffle.
    fn release(&mut self) -> Result<(), Violation> {
        let mut is_released = false;
        for start in (0..self.lanes.len()).step_by(WARP) {
            if matches!(self.lanes[start].state, State::AtShuffle(_)) {
                self.shuffle(start)?;
                is_released = true;
            }
        }
        if is_released || self.lanes.iter().all(|lane| lane.state == State::Finished) {
            return Ok(());
        }
        let first = self.lanes[0].place();
        if let Some(other) = self.lanes.iter().position(|lane| lane.state != State::AtBarrier || lane.place() != first)
        {
            let lines = [0, other].map(|lane| self.lanes[lane].line(self.module));
            let what = format!("waits at line {}, and lane 0 at line {}", lines[1], lines[0]);
            return Err(self.fault(other, lines[1], what));
        }
        self.lanes.iter_mut().for_each(Lane::pass);
        Ok(())
    }

    /// Exchanges the values of the warp that begins at lane `start`.
    fn shuffle(&mut self, start: usize) -> Result<(), Violation> {
        let end = (start + WARP).min(self.lanes.len());
        let place = self.lanes[start].place();
        let mut waiting = Vec::with_capacity(WARP);
        for lane in start..end {
            match self.lanes[lane].state {
                State::AtShuffle(shuffle) if self.lanes[lane].place() == place => waiting.push(shuffle),
                _ => {
                    let line = self.lanes[lane].line(self.module);
                    return Err(self.fault(lane, line, format!("does not take part in the shuffle of lane {start}")));
                }
            }
        }
        for (index, &shuffle) in waiting.iter().enumerate() {
            let line = self.lanes[start + index].line(self.module);
            if waiting.len() != WARP || shuffle.members != u64::from(u32::MAX) {
                let what = format!("shuffles {} lanes as {:#x}", waiting.len(), shuffle.members);
                return Err(self.fault(start + index, line, what));
            }
            let segment = (shuffle.clamp >> 8) & 31;
            let last = (index as u64 & segment) | (shuffle.clamp & 31 & !segment);
            let other = index as u64 ^ (shuffle.mask & 31);
            let from = if other <= last { other as usize } else { index };
            self.lanes[start + index].receive(shuffle, waiting[from].value, other <= last);
        }
        Ok(())
    }
}
