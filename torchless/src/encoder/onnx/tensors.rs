//! Tensors of an ONNX file: numbers in typed fields, as raw bytes, or in a file beside it.

use std::path::Path;

use prost::bytes::Bytes;

use super::schema::TensorProto;
use crate::encoder::tensor::{Data, Kind, Tensor};
use crate::error::{Error, Problem};
use crate::files::MappedFile;
use crate::simd::{brain_half, half};

/// The types of elements that are read, by their numbers in ONNX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    F16,
    Bf16,
    F32,
    F64,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    Bool,
}

impl Element {
    fn of(code: i32) -> Option<Element> {
        Some(match code {
            1 => Element::F32,
            2 => Element::U8,
            3 => Element::I8,
            4 => Element::U16,
            5 => Element::I16,
            6 => Element::I32,
            7 => Element::I64,
            9 => Element::Bool,
            10 => Element::F16,
            11 => Element::F64,
            12 => Element::U32,
            13 => Element::U64,
            16 => Element::Bf16,
            _ => return None,
        })
    }

    fn n_bytes(self) -> usize {
        match self {
            Element::I8 | Element::U8 | Element::Bool => 1,
            Element::F16 | Element::Bf16 | Element::I16 | Element::U16 => 2,
            Element::F32 | Element::I32 | Element::U32 => 4,
            Element::F64 | Element::I64 | Element::U64 => 8,
        }
    }
}

/// Returns what elements of ONNX's type `code` mean here.
pub(super) fn kind(code: i32) -> Option<Kind> {
    Element::of(code).map(|element| match element {
        Element::F16 | Element::Bf16 | Element::F32 | Element::F64 => Kind::Float,
        Element::Bool => Kind::Bool,
        _ => Kind::Int,
    })
}

/// Reads a tensor of the file at `path`.
pub(crate) fn read(path: &Path, proto: &TensorProto) -> Result<Tensor, Error> {
    let error = |problem| Error::malformed(path, format!("tensor `{}`", proto.name), problem);
    let unsupported = || Problem::Unsupported { what: "the type of elements", found: proto.data_type.to_string() };
    let element = Element::of(proto.data_type).ok_or_else(|| error(unsupported()))?;
    let shape = proto.dims.iter().map(|&size| usize::try_from(size).ok()).collect::<Option<Vec<usize>>>();
    let shape = shape.ok_or_else(|| error(out_of_range(format!("{:?}", proto.dims))))?;
    let length = shape.iter().try_fold(1_usize, |length, &size| length.checked_mul(size));
    let length = length.ok_or_else(|| error(out_of_range(format!("{shape:?}"))))?;
    let data = match raw_bytes(path, proto)? {
        Some(bytes) => {
            let needed =
                length.checked_mul(element.n_bytes()).ok_or_else(|| error(out_of_range(format!("{shape:?}"))))?;
            if bytes.len() != needed {
                let expected = format!("{needed} bytes for shape {shape:?}");
                let found = format!("{} bytes", bytes.len());
                return Err(error(Problem::Unexpected { expected, found }));
            }
            of_bytes(element, &bytes)
        }
        None => of_fields(element, proto),
    };
    if data.len() != length {
        let (expected, found) = (format!("{length} numbers for shape {shape:?}"), format!("{} numbers", data.len()));
        return Err(error(Problem::Unexpected { expected, found }));
    }
    Ok(Tensor { kind: kind(proto.data_type).unwrap_or(Kind::Float), shape, data })
}

fn out_of_range(value: String) -> Problem {
    Problem::OutOfRange { value, expected: "sizes that can be counted" }
}

/// Returns the tensor's numbers as bytes, if they are stored so.
fn raw_bytes(path: &Path, proto: &TensorProto) -> Result<Option<Bytes>, Error> {
    if proto.data_location == 1 {
        return external(path, proto).map(Some);
    }
    Ok((!proto.raw_data.is_empty()).then(|| proto.raw_data.clone()))
}

/// Returns the bytes of a tensor that is in another file of the same folder.
fn external(path: &Path, proto: &TensorProto) -> Result<Bytes, Error> {
    let field = || format!("tensor `{}`", proto.name);
    let entry = |key: &str| proto.external_data.iter().find(|entry| entry.key == key).map(|entry| &entry.value);
    let missing = || Error::malformed(path, field(), Problem::Missing);
    let name = entry("location").ok_or_else(missing)?;
    let is_plain = Path::new(name).file_name().is_some_and(|plain| plain == name.as_str());
    if !is_plain || name.contains(['/', '\\', '\0']) {
        return Err(Error::malformed(path, field(), Problem::NotAFileName { name: name.clone() }));
    }
    let number = |key: &str| entry(key).map(|text| text.parse::<usize>());
    let malformed = |_| Error::malformed(path, field(), out_of_range(format!("{:?}", proto.external_data)));
    let offset = number("offset").transpose().map_err(malformed)?.unwrap_or(0);
    let length = number("length").transpose().map_err(malformed)?;
    let file = MappedFile::open(&path.with_file_name(name))?;
    let rest = file.bytes.get(offset..).unwrap_or_default();
    let length = length.unwrap_or(rest.len());
    let bytes = rest.get(..length).ok_or_else(|| {
        let needed = (offset as u64).saturating_add(length as u64);
        file.malformed(field(), Problem::Truncated { needed, available: file.bytes.len() as u64 })
    })?;
    Ok(Bytes::copy_from_slice(bytes))
}

fn of_bytes(element: Element, bytes: &[u8]) -> Data {
    fn each<const N: usize, T>(bytes: &[u8], value: impl Fn([u8; N]) -> T) -> Vec<T> {
        bytes.as_chunks::<N>().0.iter().map(|chunk| value(*chunk)).collect()
    }
    match element {
        Element::F16 => Data::F32(each(bytes, |b| half(u16::from_le_bytes(b)))),
        Element::Bf16 => Data::F32(each(bytes, |b| brain_half(u16::from_le_bytes(b)))),
        Element::F32 => Data::F32(each(bytes, f32::from_le_bytes)),
        Element::F64 => Data::F64(each(bytes, f64::from_le_bytes)),
        Element::I8 => Data::Int(each(bytes, |b: [u8; 1]| i64::from(b[0] as i8))),
        Element::U8 => Data::Int(each(bytes, |b: [u8; 1]| i64::from(b[0]))),
        Element::I16 => Data::Int(each(bytes, |b| i64::from(i16::from_le_bytes(b)))),
        Element::U16 => Data::Int(each(bytes, |b| i64::from(u16::from_le_bytes(b)))),
        Element::I32 => Data::Int(each(bytes, |b| i64::from(i32::from_le_bytes(b)))),
        Element::U32 => Data::Int(each(bytes, |b| i64::from(u32::from_le_bytes(b)))),
        Element::I64 => Data::Int(each(bytes, i64::from_le_bytes)),
        Element::U64 => Data::Int(each(bytes, |b| u64::from_le_bytes(b) as i64)),
        Element::Bool => Data::Int(each(bytes, |b: [u8; 1]| i64::from(b[0] != 0))),
    }
}

fn of_fields(element: Element, proto: &TensorProto) -> Data {
    let halves = |value: fn(u16) -> f32| proto.int32_data.iter().map(|&bits| value(bits as u16)).collect();
    match element {
        Element::F16 => Data::F32(halves(half)),
        Element::Bf16 => Data::F32(halves(brain_half)),
        Element::F32 => Data::F32(proto.float_data.clone()),
        Element::F64 => Data::F64(proto.double_data.clone()),
        Element::I64 => Data::Int(proto.int64_data.clone()),
        Element::U32 | Element::U64 => Data::Int(proto.uint64_data.iter().map(|&value| value as i64).collect()),
        Element::Bool => Data::Int(proto.int32_data.iter().map(|&value| i64::from(value != 0)).collect()),
        _ => Data::Int(proto.int32_data.iter().map(|&value| i64::from(value)).collect()),
    }
}
