//! NumPy's files: arrays with a header in Python's notation, alone or in an archive.
//!
//! Little-endian numbers in the order of C are read. Every length is checked against the file, and
//! an archive may not unpack to more than its limit.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, Write};
use std::path::Path;

use crate::error::{Error, Problem};
use crate::simd::half;

/// The most bytes of an array, unpacked.
const LARGEST: u64 = 8 << 30;

/// The longest header that is read, in bytes.
const LONGEST_HEADER: usize = 1 << 16;

/// An array: its shape, and its numbers, the last axis running fastest.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Array {
    pub(crate) shape: Vec<usize>,
    pub(crate) numbers: Numbers,
}

/// The numbers of an array, as they are used here.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Numbers {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I64(Vec<i64>),
    Bool(Vec<bool>),
}

/// Reads the arrays of an `npz` archive by name, or the one of an `npy` file, whose name is empty.
pub(crate) fn read(path: &Path) -> Result<BTreeMap<String, Array>, Error> {
    let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(unreadable)?;
    let mut start = [0; 4];
    let is_archive = file.read_exact(&mut start).is_ok() && start == *b"PK\x03\x04";
    file.rewind().map_err(unreadable)?;
    if !is_archive {
        let array =
            read_array(io::BufReader::new(file)).map_err(|problem| Error::malformed(path, "the array", problem))?;
        return Ok(BTreeMap::from([(String::new(), array)]));
    }
    let archive = |error: zip::result::ZipError| {
        Error::malformed(path, "the archive", Problem::Json { message: error.to_string() })
    };
    let mut zip = zip::ZipArchive::new(io::BufReader::new(file)).map_err(archive)?;
    let mut arrays = BTreeMap::new();
    for index in 0..zip.len() {
        let entry = zip.by_index(index).map_err(archive)?;
        let name = entry.name().map_err(archive)?.trim_end_matches(".npy").to_owned();
        let array = read_array(entry).map_err(|problem| Error::malformed(path, format!("array `{name}`"), problem))?;
        arrays.insert(name, array);
    }
    Ok(arrays)
}

fn read_array(mut from: impl Read) -> Result<Array, Problem> {
    let header = read_header(&mut from)?;
    let element = Element::of(&header.descr)
        .ok_or_else(|| Problem::Unsupported { what: "the type of elements", found: header.descr.clone() })?;
    if header.is_fortran && header.shape.len() > 1 {
        return Err(Problem::Unsupported { what: "the order of elements", found: "fortran_order".into() });
    }
    let length = header.shape.iter().try_fold(element.n_bytes() as u64, |bytes, &size| bytes.checked_mul(size as u64));
    let length = length.filter(|&bytes| bytes <= LARGEST).ok_or_else(|| Problem::OutOfRange {
        value: format!("{:?}", header.shape),
        expected: "arrays of at most 8 GiB are read",
    })?;
    let mut bytes = Vec::new();
    // Grows with what there is, and not with what the header claims.
    from.take(length).read_to_end(&mut bytes).map_err(|error| Problem::Json { message: error.to_string() })?;
    if bytes.len() as u64 != length {
        return Err(Problem::Truncated { needed: length, available: bytes.len() as u64 });
    }
    Ok(Array { shape: header.shape, numbers: element.numbers(&bytes) })
}

/// The types of elements that are read.
#[derive(Debug, Clone, Copy)]
enum Element {
    Bool,
    I8,
    U8,
    I16,
    I32,
    I64,
    F16,
    F32,
    F64,
}

impl Element {
    fn of(descr: &str) -> Option<Element> {
        Some(match descr {
            "|b1" => Element::Bool,
            "|i1" => Element::I8,
            "|u1" => Element::U8,
            "<i2" => Element::I16,
            "<i4" => Element::I32,
            "<i8" => Element::I64,
            "<f2" => Element::F16,
            "<f4" => Element::F32,
            "<f8" => Element::F64,
            _ => return None,
        })
    }

    fn n_bytes(self) -> usize {
        match self {
            Element::Bool | Element::I8 | Element::U8 => 1,
            Element::I16 | Element::F16 => 2,
            Element::I32 | Element::F32 => 4,
            Element::I64 | Element::F64 => 8,
        }
    }

    fn numbers(self, bytes: &[u8]) -> Numbers {
        fn each<const N: usize, T>(bytes: &[u8], value: impl Fn([u8; N]) -> T) -> Vec<T> {
            bytes.as_chunks::<N>().0.iter().map(|chunk| value(*chunk)).collect()
        }
        match self {
            Element::Bool => Numbers::Bool(each(bytes, |b: [u8; 1]| b[0] != 0)),
            Element::I8 => Numbers::I64(each(bytes, |b: [u8; 1]| i64::from(b[0] as i8))),
            Element::U8 => Numbers::I64(each(bytes, |b: [u8; 1]| i64::from(b[0]))),
            Element::I16 => Numbers::I64(each(bytes, |b| i64::from(i16::from_le_bytes(b)))),
            Element::I32 => Numbers::I64(each(bytes, |b| i64::from(i32::from_le_bytes(b)))),
            Element::I64 => Numbers::I64(each(bytes, i64::from_le_bytes)),
            Element::F16 => Numbers::F32(each(bytes, |b| half(u16::from_le_bytes(b)))),
            Element::F32 => Numbers::F32(each(bytes, f32::from_le_bytes)),
            Element::F64 => Numbers::F64(each(bytes, f64::from_le_bytes)),
        }
    }
}

struct Header {
    descr: String,
    is_fortran: bool,
    shape: Vec<usize>,
}

fn read_header(from: &mut impl Read) -> Result<Header, Problem> {
    let mut start = [0; 8];
    let short = |_| Problem::Truncated { needed: 8, available: 0 };
    from.read_exact(&mut start).map_err(short)?;
    if start[..6] != *b"\x93NUMPY" {
        return Err(Problem::Unexpected { expected: "an array of NumPy".into(), found: "something else".into() });
    }
    let mut length = [0; 4];
    let width = if start[6] == 1 { 2 } else { 4 };
    from.read_exact(&mut length[..width]).map_err(short)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST_HEADER {
        return Err(Problem::OutOfRange { value: length.to_string(), expected: "headers have at most 65536 bytes" });
    }
    let mut text = vec![0; length];
    from.read_exact(&mut text).map_err(|_| Problem::Truncated { needed: length as u64, available: 0 })?;
    let text = String::from_utf8(text).map_err(|_| Problem::NotUtf8)?;
    parse_header(&text).ok_or_else(|| Problem::Unexpected {
        expected: "a header with `descr`, `fortran_order` and `shape`".into(),
        found: text.trim().to_owned(),
    })
}

/// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
fn parse_header(text: &str) -> Option<Header> {
    let after = |key: &str| text.split_once(&format!("'{key}':")).map(|(_, rest)| rest.trim_start());
    let descr = after("descr")?.strip_prefix('\'')?.split_once('\'')?.0.to_owned();
    let is_fortran = after("fortran_order")?.starts_with("True");
    let shape = after("shape")?.strip_prefix('(')?.split_once(')')?.0;
    let sizes = shape.split(',').map(str::trim).filter(|size| !size.is_empty());
    let shape = sizes.map(|size| size.parse().ok()).collect::<Option<Vec<usize>>>()?;
    Some(Header { descr, is_fortran, shape })
}

/// Writes an array as an `npy` file.
pub(crate) fn write(out: &mut impl Write, array: &Array) -> io::Result<()> {
    let descr = match &array.numbers {
        Numbers::F32(_) => "<f4",
        Numbers::F64(_) => "<f8",
        Numbers::I64(_) => "<i8",
        Numbers::Bool(_) => "|b1",
    };
    let mut shape = array.shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if array.shape.len() == 1 {
        shape.push(',');
    }
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    // The numbers begin at a multiple of 64 bytes.
    let padding = 64 - (10 + header.len() + 1) % 64;
    header.extend(std::iter::repeat_n(' ', padding % 64));
    header.push('\n');
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&(header.len() as u16).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    match &array.numbers {
        Numbers::F32(values) => values.iter().try_for_each(|value| out.write_all(&value.to_le_bytes())),
        Numbers::F64(values) => values.iter().try_for_each(|value| out.write_all(&value.to_le_bytes())),
        Numbers::I64(values) => values.iter().try_for_each(|value| out.write_all(&value.to_le_bytes())),
        Numbers::Bool(values) => values.iter().try_for_each(|value| out.write_all(&[u8::from(*value)])),
    }
}

/// Writes arrays with names as an `npz` archive.
pub(crate) fn write_archive(out: impl Write + Seek, arrays: &[(String, Array)]) -> io::Result<()> {
    let mut zip = zip::ZipWriter::new(out);
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, array) in arrays {
        let mut bytes = Cursor::new(Vec::new());
        write(&mut bytes, array)?;
        zip.start_file(format!("{name}.npy"), options.large_file(bytes.get_ref().len() > 1 << 31))
            .map_err(io::Error::from)?;
        zip.write_all(bytes.get_ref())?;
    }
    zip.finish().map(drop).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_read_as_they_were_written() {
        let array = Array { shape: vec![2, 3], numbers: Numbers::F32(vec![1.0, -2.5, 0.0, 4.0, 5.0, f32::MAX]) };
        let mut bytes = Vec::new();
        write(&mut bytes, &array).expect("memory");
        assert_eq!((bytes.len() - 24) % 64, 0);
        assert_eq!(read_array(&bytes[..]), Ok(array));
    }

    #[test]
    fn a_header_that_claims_too_much_is_refused() {
        for shape in ["(99999999999999999999,)", "(1000000000000,)", "(4294967296, 4294967296)"] {
            let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
            let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
            bytes.extend((header.len() as u16).to_le_bytes());
            bytes.extend(header.as_bytes());
            assert!(read_array(&bytes[..]).is_err(), "{shape}");
        }
    }
}
