//! Archives of NumPy as the fixtures have them: stored without compression.

use std::path::Path;

/// An array: its shape, and its numbers, the last axis running fastest.
#[derive(Debug, Clone)]
pub(super) struct Array {
    pub(super) shape: Vec<usize>,
    pub(super) numbers: Numbers,
}

#[derive(Debug, Clone)]
pub(super) enum Numbers {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I64(Vec<i64>),
    Bool(Vec<bool>),
}

impl Numbers {
    /// Returns the blocks of `length` numbers that `blocks` name.
    pub(super) fn parts(&self, blocks: &[usize], length: usize) -> Numbers {
        fn take<T: Copy>(values: &[T], blocks: &[usize], length: usize) -> Vec<T> {
            blocks.iter().flat_map(|block| values[block * length..][..length].iter().copied()).collect()
        }
        match self {
            Numbers::F32(values) => Numbers::F32(take(values, blocks, length)),
            Numbers::F64(values) => Numbers::F64(take(values, blocks, length)),
            Numbers::I64(values) => Numbers::I64(take(values, blocks, length)),
            Numbers::Bool(values) => Numbers::Bool(take(values, blocks, length)),
        }
    }
}

impl Array {
    /// Returns the array with zeros behind the last axis.
    pub(super) fn padded(&self, more: usize) -> Array {
        fn pad<T: Copy + Default>(values: &[T], size: usize, more: usize) -> Vec<T> {
            let zeros = std::iter::repeat_n(T::default(), more);
            values.chunks(size).flat_map(|row| row.iter().copied().chain(zeros.clone())).collect()
        }
        let size = *self.shape.last().expect("an axis");
        let mut shape = self.shape.clone();
        *shape.last_mut().expect("an axis") += more;
        let numbers = match &self.numbers {
            Numbers::F32(values) => Numbers::F32(pad(values, size, more)),
            Numbers::F64(values) => Numbers::F64(pad(values, size, more)),
            Numbers::I64(values) => Numbers::I64(pad(values, size, more)),
            Numbers::Bool(values) => Numbers::Bool(pad(values, size, more)),
        };
        Array { shape, numbers }
    }
}

/// Reads the arrays of an archive by name.
pub(super) fn read(path: &Path) -> Vec<(String, Array)> {
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut archive = zip::ZipArchive::new(file).expect("an archive");
    let n_arrays = archive.len();
    let one = |index| {
        let mut entry = archive.by_index(index).expect("a member");
        let name = entry.name().expect("a name").trim_end_matches(".npy").to_owned();
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut bytes).expect("bytes");
        (name, array(&bytes))
    };
    (0..n_arrays).map(one).collect()
}

fn array(bytes: &[u8]) -> Array {
    let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..10 + length]).expect("a header");
    let values = &bytes[10 + length..];
    let shape = header.split_once('(').and_then(|(_, rest)| rest.split_once(')')).expect("a shape").0;
    let sizes = shape.split(',').map(str::trim).filter(|size| !size.is_empty());
    let shape = sizes.map(|size| size.parse().expect("a size")).collect();
    let numbers = match header.split('\'').nth(3).expect("a type") {
        "<f4" => Numbers::F32(values.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()),
        "<f8" => Numbers::F64(values.as_chunks().0.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect()),
        "<i8" => Numbers::I64(values.as_chunks().0.iter().map(|&bytes| i64::from_le_bytes(bytes)).collect()),
        "|b1" => Numbers::Bool(values.iter().map(|&byte| byte != 0).collect()),
        other => panic!("type {other}"),
    };
    Array { shape, numbers }
}

/// Writes an archive of arrays.
pub(super) fn write(path: &Path, arrays: &[(String, Array)]) {
    let mut archive = zip::ZipWriter::new(std::fs::File::create(path).expect("a file"));
    for (name, array) in arrays {
        let (descr, bytes): (&str, Vec<u8>) = match &array.numbers {
            Numbers::F32(values) => ("<f4", values.iter().flat_map(|value| value.to_le_bytes()).collect()),
            Numbers::F64(values) => ("<f8", values.iter().flat_map(|value| value.to_le_bytes()).collect()),
            Numbers::I64(values) => ("<i8", values.iter().flat_map(|value| value.to_le_bytes()).collect()),
            Numbers::Bool(values) => ("|b1", values.iter().map(|value| u8::from(*value)).collect()),
        };
        let shape: String = array.shape.iter().map(|size| format!("{size},")).collect();
        archive.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default()).expect("an archive");
        std::io::Write::write_all(&mut archive, &npy(descr, &shape, &bytes)).expect("an archive");
    }
    archive.finish().expect("an archive");
}

/// Returns an array in NumPy's format.
pub(super) fn npy(descr: &str, shape: &str, numbers: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend([header.as_bytes(), numbers].concat());
    bytes
}
