//! Safetensors: a length, a JSON header, and the numbers. Every claim of the header is held against the file.
//!
//! Format: the documentation of Hugging Face's `safetensors`.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use crate::error::{Error, Problem};
use crate::file::{MappedFile, StoredTensor, Tensors, read_text, refuse_overlaps};

/// What the format allows a header to have.
const LONGEST_HEADER: u64 = 100_000_000;

/// One tensor in the header.
#[derive(Debug, serde::Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

/// What a header has, in its order; two of the same name are two.
struct Entries(Vec<(String, serde_json::Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entries, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Entries;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

/// Bits of one number, of every type that the format has.
fn bits(dtype: &str) -> Option<u64> {
    Some(match dtype {
        "F64" | "I64" | "U64" | "C64" => 64,
        "F32" | "I32" | "U32" => 32,
        "F16" | "BF16" | "I16" | "U16" => 16,
        "BOOL" | "I8" | "U8" | "F8_E4M3" | "F8_E5M2" | "F8_E8M0" => 8,
        _ => return None,
    })
}

/// Adds the tensors of one file to `tensors`.
pub(crate) fn read(path: &Path, tensors: &mut HashMap<String, StoredTensor>) -> Result<(), Error> {
    let file = MappedFile::open(path)?;
    let (header, start) = header(&file)?;
    let text = std::str::from_utf8(header).map_err(|_| file.malformed("the header", Problem::NotUtf8))?;
    let json = |error: serde_json::Error| file.malformed("the header", Problem::Json { message: error.to_string() });
    let Entries(entries) = serde_json::from_str(text).map_err(json)?;
    for (name, entry) in entries {
        if name == "__metadata__" {
            continue;
        }
        let field = format!("tensor `{name}`");
        let entry: Entry = serde_json::from_value(entry)
            .map_err(|error| file.malformed(&*field, Problem::Json { message: error.to_string() }))?;
        let tensor = check(&file, start, entry).map_err(|problem| file.malformed(&*field, problem))?;
        if tensors.insert(name, tensor).is_some() {
            return Err(file.malformed(field, Problem::there_twice()));
        }
    }
    refuse_overlaps(tensors)
}

/// The header's bytes, and where the numbers start.
fn header(file: &MappedFile) -> Result<(&[u8], usize), Error> {
    let bytes = &file.bytes[..];
    let available = bytes.len() as u64;
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else {
        return Err(file.malformed("the length of the header", Problem::Truncated { needed: 8, available }));
    };
    let length = u64::from_le_bytes(*length);
    if length > LONGEST_HEADER {
        let problem = Problem::OutOfRange { value: length.to_string(), expected: "at most 100000000" };
        return Err(file.malformed("the length of the header", problem));
    }
    let header = rest.get(..length as usize).ok_or_else(|| {
        file.malformed("the header", Problem::Truncated { needed: length, available: rest.len() as u64 })
    })?;
    Ok((header, 8 + header.len()))
}

fn check(file: &MappedFile, start: usize, entry: Entry) -> Result<StoredTensor, Problem> {
    let Entry { dtype, shape, data_offsets: [first, last] } = entry;
    let available = (file.bytes.len() - start) as u64;
    let bits = bits(&dtype).ok_or_else(|| Problem::Unsupported { what: "the type", found: dtype.clone() })?;
    if first > last {
        let value = format!("{first}..{last}");
        return Err(Problem::OutOfRange { value, expected: "`data_offsets` ascend" });
    }
    if last > available {
        return Err(Problem::Truncated { needed: last, available });
    }
    let n_bits = shape.iter().try_fold(bits, |bits, &size| bits.checked_mul(size));
    if n_bits.is_none_or(|n_bits| n_bits / 8 != last - first) {
        let expected = format!("the size of shape {shape:?} with type {dtype}");
        return Err(Problem::Unexpected { expected, found: format!("{} bytes", last - first) });
    }
    // Sizes of a shape with a zero in it are not bounded by the file.
    let shape: Option<Vec<usize>> = shape.iter().map(|&size| usize::try_from(size).ok()).collect();
    let shape =
        shape.ok_or(Problem::OutOfRange { value: "the shape".into(), expected: "sizes that can be counted" })?;
    let range = start + first as usize..start + last as usize;
    Ok(StoredTensor { file: file.clone(), dtype, shape, range })
}

/// The index of a model in several files.
#[derive(Debug, serde::Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// The tensors of a model's folder: `model.safetensors`, or the files that `model.safetensors.index.json` lists.
pub(crate) fn read_folder(folder: &Path) -> Result<Tensors, Error> {
    let mut by_name = HashMap::new();
    let single = folder.join("model.safetensors");
    let index_path = folder.join("model.safetensors.index.json");
    if !index_path.exists() || single.exists() {
        read(&single, &mut by_name)?;
        return Ok(Tensors { path: single.into(), by_name });
    }
    let index: Index = serde_json::from_str(&read_text(&index_path)?)
        .map_err(|error| Error::malformed(&index_path, "the index", Problem::Json { message: error.to_string() }))?;
    let mut files: Vec<&String> = index.weight_map.values().collect();
    files.sort();
    files.dedup();
    for name in files {
        let is_plain = Path::new(name).file_name().is_some_and(|plain| plain == name.as_str());
        if !is_plain {
            return Err(Error::malformed(&index_path, "`weight_map`", Problem::NotAFileName { name: name.clone() }));
        }
        read(&folder.join(name), &mut by_name)?;
    }
    if let Some((name, file)) = index.weight_map.iter().find(|(name, _)| !by_name.contains_key(*name)) {
        return Err(Error::malformed(folder.join(file), format!("tensor `{name}`"), Problem::Missing));
    }
    Ok(Tensors { path: index_path.into(), by_name })
}
