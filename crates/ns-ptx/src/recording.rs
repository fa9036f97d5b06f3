//! Reads recorded launches, in the format of `ns-device/src/emulated/enabled/record.rs`.

/// An argument of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// A struct of constants.
    Constants(Vec<u8>),
    /// A buffer that the kernel reads.
    Read(Vec<u8>),
    /// A buffer that the kernel writes.
    Written {
        /// Its bytes before the launch.
        before: Vec<u8>,
        /// Its bytes after the launch.
        after: Vec<u8>,
    },
}

/// A recorded launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The kernel, without its precision.
    pub kernel: String,
    /// The number of blocks.
    pub blocks: u32,
    /// The lanes of a block.
    pub lanes: u32,
    /// The reals of a block's shared memory.
    pub shared_reals: u32,
    /// The bytes of a real: 4 or 8.
    pub real_bytes: u32,
    /// The arguments, in order.
    pub arguments: Vec<Argument>,
}

/// A file that is no recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the file is not a recorded launch, or is cut off")]
pub struct NoRecording;

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], NoRecording> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or(NoRecording)?;
        self.0 = rest;
        Ok(taken)
    }

    fn word(&mut self) -> Result<u32, NoRecording> {
        self.take(4)?.try_into().map(u32::from_le_bytes).map_err(|_| NoRecording)
    }

    fn long(&mut self) -> Result<usize, NoRecording> {
        let bytes = self.take(8)?.try_into().map(u64::from_le_bytes).map_err(|_| NoRecording)?;
        usize::try_from(bytes).map_err(|_| NoRecording)
    }
}

impl Recording {
    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// If they are no recording.
    pub fn read(bytes: &[u8]) -> Result<Self, NoRecording> {
        let mut reader = Reader(bytes);
        if reader.take(8)? != b"NSREPLAY" {
            return Err(NoRecording);
        }
        let name_bytes = reader.word()? as usize;
        let [blocks, lanes, shared_reals, real_bytes, n_arguments] =
            [reader.word()?, reader.word()?, reader.word()?, reader.word()?, reader.word()?];
        let name = String::from_utf8_lossy(reader.take(name_bytes)?).into_owned();
        let kernel = name.rsplit_once("_f").map_or(name.as_str(), |(kernel, _)| kernel).to_owned();
        let mut arguments = Vec::new();
        for _ in 0..n_arguments {
            let kind = reader.word()?;
            let n_bytes = reader.long()?;
            let bytes = reader.take(n_bytes)?.to_vec();
            arguments.push(match kind {
                0 => Argument::Constants(bytes),
                1 => Argument::Read(bytes),
                2 => Argument::Written { before: bytes, after: Vec::new() },
                _ => return Err(NoRecording),
            });
        }
        for argument in &mut arguments {
            if let Argument::Written { before, after } = argument {
                *after = reader.take(before.len())?.to_vec();
            }
        }
        Ok(Self { kernel, blocks, lanes, shared_reals, real_bytes, arguments })
    }
}

/// Returns the reals of a buffer.
#[must_use]
pub fn reals(bytes: &[u8], real_bytes: u32) -> Vec<f64> {
    if real_bytes == 8 {
        return bytes.as_chunks().0.iter().map(|chunk| f64::from_le_bytes(*chunk)).collect();
    }
    bytes.as_chunks().0.iter().map(|chunk| f64::from(f32::from_le_bytes(*chunk))).collect()
}
