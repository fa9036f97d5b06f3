//! Memory in regions that no address leaves: a buffer, a global variable, the memory of a block or
//! of a lane.
//!
//! An address is the number of its region in the upper 24 bits and an offset in the lower 40, so an
//! address that was computed outside of its region is found, even if another begins there.

use crate::instruction::{Space, Type};
use crate::recording::Argument;

/// The region of a kernel's parameters.
pub(crate) const PARAMETERS: usize = 1;
/// The region of a block's memory.
pub(crate) const SHARED: usize = 2;
/// The region of a lane's memory.
pub(crate) const LOCAL: usize = 3;
/// The first region of a module's global variables.
pub(crate) const GLOBALS: usize = 16;
/// The first region of buffers.
pub(crate) const BUFFERS: usize = 1 << 16;

const OFFSET_BITS: u32 = 40;

/// Returns an address.
pub(crate) fn address_of(region: usize, offset: u64) -> u64 {
    ((region as u64) << OFFSET_BITS) | offset
}

/// A buffer of a launch.
#[derive(Debug, Clone)]
pub(crate) struct Buffer {
    pub(crate) bytes: Vec<u8>,
    /// Whether the kernel may write it.
    pub(crate) is_written: bool,
}

/// The memory that all blocks of a launch see.
#[derive(Debug)]
pub(crate) struct GlobalMemory<'a> {
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) globals: &'a [Vec<u8>],
    pub(crate) parameters: Vec<u8>,
    /// How many accesses of buffers and global variables were checked.
    pub(crate) n_accesses: u64,
}

/// The memory of a block, with what was written so far.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    bytes: Vec<u8>,
    is_written: Vec<bool>,
}

impl SharedMemory {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { bytes: vec![0xff; bytes], is_written: vec![false; bytes] }
    }
}

/// The memory that the lanes of a block see.
pub(crate) struct View<'a, 'm> {
    pub(crate) global: &'a mut GlobalMemory<'m>,
    pub(crate) shared: &'a mut SharedMemory,
}

/// Where an access is.
struct Place {
    region: usize,
    offset: usize,
}

impl Buffer {
    /// Returns the buffer of an argument, empty for constants.
    pub(crate) fn of(argument: &Argument) -> Self {
        match argument {
            Argument::Constants(_) => Self { bytes: Vec::new(), is_written: false },
            Argument::Read(bytes) => Self { bytes: bytes.clone(), is_written: false },
            Argument::Written { before, .. } => Self { bytes: before.clone(), is_written: true },
        }
    }
}

impl View<'_, '_> {
    /// Returns the value of type `of` at `address`, for a lane whose memory is `local`.
    pub(crate) fn load(&mut self, space: Space, of: Type, address: u64, local: &mut [u8]) -> Result<u64, String> {
        let place = place(of, address)?;
        let bytes = match (space, place.region) {
            (Space::Parameters, PARAMETERS) => &self.global.parameters[..],
            (Space::Shared, SHARED) => {
                let written = self.shared.is_written.get(place.offset..place.offset + of.bytes());
                if written.is_some_and(|written| written.contains(&false)) {
                    return Err(format!("reads byte {} of shared memory, which was not written", place.offset));
                }
                &self.shared.bytes[..]
            }
            (Space::Local, LOCAL) => &*local,
            (Space::Global | Space::GlobalReadOnly, region) => {
                self.global.n_accesses += 1;
                global(self.global, space, region)?
            }
            _ => return Err(format!("{address:#x} is not in the space that the instruction names")),
        };
        let found = bytes.get(place.offset..place.offset + of.bytes());
        let found = found.ok_or_else(|| outside(&place, bytes.len()))?;
        let mut value = [0; 8];
        value[..found.len()].copy_from_slice(found);
        Ok(u64::from_le_bytes(value))
    }

    /// Writes a value of type `of` to `address`, for a lane whose memory is `local`.
    pub(crate) fn store(
        &mut self,
        space: Space,
        of: Type,
        address: u64,
        value: u64,
        local: &mut [u8],
    ) -> Result<(), String> {
        let place = place(of, address)?;
        let range = place.offset..place.offset + of.bytes();
        let bytes = match (space, place.region) {
            (Space::Shared, SHARED) => {
                if let Some(written) = self.shared.is_written.get_mut(range.clone()) {
                    written.fill(true);
                }
                &mut self.shared.bytes[..]
            }
            (Space::Local, LOCAL) => local,
            (Space::Global, region) if region >= BUFFERS => {
                self.global.n_accesses += 1;
                let buffer = self.global.buffers.get_mut(region - BUFFERS);
                let buffer = buffer.ok_or_else(|| format!("{address:#x} is not a buffer"))?;
                if !buffer.is_written {
                    return Err(format!("writes argument {}, which is an input", region - BUFFERS));
                }
                &mut buffer.bytes[..]
            }
            _ => return Err(format!("writes {address:#x}, which is not in the space that the instruction names")),
        };
        let n_bytes = bytes.len();
        let slot = bytes.get_mut(range).ok_or_else(|| outside(&place, n_bytes))?;
        slot.copy_from_slice(&value.to_le_bytes()[..slot.len()]);
        Ok(())
    }
}

/// Returns the bytes of a buffer, or of a global variable.
fn global<'a>(memory: &'a GlobalMemory<'_>, space: Space, region: usize) -> Result<&'a [u8], String> {
    if let Some(index) = region.checked_sub(BUFFERS) {
        let buffer = memory.buffers.get(index).ok_or_else(|| format!("region {region} is not a buffer"))?;
        if space == Space::GlobalReadOnly && buffer.is_written {
            return Err(format!("reads argument {index}, which the kernel may write, through the read-only cache"));
        }
        return Ok(&buffer.bytes);
    }
    let index = region.checked_sub(GLOBALS).filter(|&index| index < memory.globals.len());
    index.map(|index| &memory.globals[index][..]).ok_or_else(|| format!("region {region} is not a buffer"))
}

fn place(of: Type, address: u64) -> Result<Place, String> {
    let offset = (address & ((1 << OFFSET_BITS) - 1)) as usize;
    if !offset.is_multiple_of(of.bytes()) {
        return Err(format!("{address:#x} is not aligned to {} bytes", of.bytes()));
    }
    Ok(Place { region: (address >> OFFSET_BITS) as usize, offset })
}

fn outside(place: &Place, n_bytes: usize) -> String {
    let what = match place.region {
        PARAMETERS => "the parameters".to_owned(),
        SHARED => "shared memory".to_owned(),
        LOCAL => "local memory".to_owned(),
        region if region >= BUFFERS => format!("argument {}", region - BUFFERS),
        _ => "a global variable".to_owned(),
    };
    format!("byte {} is outside of {what}, which has {n_bytes}", place.offset)
}
