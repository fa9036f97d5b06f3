//! Writes launches to files, from which `emulation/replay.cpp` repeats them under sanitizers.
//!
//! A file, in the machine's byte order: `NSREPLAY`, then u32: length of the kernel's exported name,
//! blocks, lanes, shared reals, bytes of a real, arguments; the name; per argument a u32 (0
//! constants, 1 read, 2 written), a u64 of bytes, and the bytes before the launch; then the bytes
//! after it of each written buffer.

use crate::driver::RawArgument;
use crate::{LaunchDims, Precision};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

static NUMBER: AtomicU64 = AtomicU64::new(0);

pub(super) struct Recording {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Recording {
    pub(super) fn begin(
        folder: &Path,
        kernel: &str,
        precision: Precision,
        grid: LaunchDims,
        arguments: &[RawArgument<'_>],
    ) -> Recording {
        let name = format!("{kernel}_{precision}");
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{}-{number:06}-{name}.replay", std::process::id()));
        let mut bytes = b"NSREPLAY".to_vec();
        let header =
            [name.len(), grid.blocks as usize, grid.lanes as usize, grid.shared_reals as usize, precision.bytes()];
        for word in header.into_iter().chain([arguments.len()]) {
            bytes.extend_from_slice(&(word as u32).to_ne_bytes());
        }
        bytes.extend_from_slice(name.as_bytes());
        for argument in arguments {
            let (kind, content) = match argument {
                RawArgument::KernelConstants(constants) => (0u32, *constants),
                RawArgument::Buffer { written, .. } => (1 + u32::from(*written), content(argument)),
            };
            bytes.extend_from_slice(&kind.to_ne_bytes());
            bytes.extend_from_slice(&(content.len() as u64).to_ne_bytes());
            bytes.extend_from_slice(content);
        }
        Recording { path, bytes }
    }

    pub(super) fn end(mut self, arguments: &[RawArgument<'_>]) -> std::io::Result<()> {
        for argument in arguments {
            if matches!(argument, RawArgument::Buffer { written: true, .. }) {
                self.bytes.extend_from_slice(content(argument));
            }
        }
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::File::create(&self.path)?.write_all(&self.bytes)
    }
}

/// Returns the bytes of a buffer.
#[expect(unsafe_code, reason = "reads device memory, which is the host's here")]
fn content<'a>(argument: &RawArgument<'a>) -> &'a [u8] {
    match *argument {
        RawArgument::KernelConstants(bytes) => bytes,
        // SAFETY: the launch's arguments borrow their buffers, whose blocks were filled when they
        // were allocated, and no kernel runs while this is read.
        RawArgument::Buffer { handle, bytes, .. } => unsafe {
            std::slice::from_raw_parts(handle as usize as *const u8, bytes)
        },
    }
}
