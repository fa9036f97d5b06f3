//! Safetensors: a length, a JSON header, and the numbers. Every claim of the header is held against the file.
//!
//! Format: the documentation of Hugging Face's `safetensors`.

use std::collections::hash_map;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::json;
use super::mapped::MappedFile;
use super::tensors::{StoredTensor, Tensors, in_bytes_of};
use crate::error::{Error, Problem};

/// What the format allows a header to have.
const LONGEST_HEADER: u64 = 100_000_000;

/// One tensor in the header.
#[derive(Debug, serde::Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
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
    if !text.starts_with('{') {
        let found = text.chars().next().map_or("empty".to_owned(), |first| format!("{:?}", first.to_string()));
        let problem = Problem::Unexpected { expected: "an object, from `{` on".into(), found };
        return Err(file.malformed("the header", problem));
    }
    let mut entries: BTreeMap<String, serde_json::Value> =
        json::parse(text).map_err(|problem| file.malformed("the header", problem))?;
    if let Some(metadata) = entries.remove("__metadata__") {
        check_metadata(&metadata).map_err(|problem| file.malformed("`__metadata__`", problem))?;
    }
    let mut here = Vec::new();
    for (name, entry) in entries {
        let field = || format!("tensor `{name}`");
        let entry: Entry = serde_json::from_value(entry)
            .map_err(|error| file.malformed(field(), Problem::Json { message: error.to_string() }))?;
        let tensor = check(&file, start, entry).map_err(|problem| file.malformed(field(), problem))?;
        here.push((name, tensor));
    }
    refuse_gaps(&file, start, &mut here)?;
    here.into_iter().try_for_each(|(name, tensor)| insert(tensors, name, tensor))
}

/// Adds a tensor that no file before had.
fn insert(tensors: &mut HashMap<String, StoredTensor>, name: String, tensor: StoredTensor) -> Result<(), Error> {
    match tensors.entry(name) {
        hash_map::Entry::Vacant(place) => {
            place.insert(tensor);
            Ok(())
        }
        hash_map::Entry::Occupied(other) => {
            let (expected, found) = ("in one file".into(), format!("in `{}`, too", other.get().file.name()));
            let problem = Problem::Unexpected { expected, found };
            Err(tensor.file.malformed(format!("tensor `{}`", other.key()), problem))
        }
    }
}

/// Texts with names, if there are any.
fn check_metadata(metadata: &serde_json::Value) -> Result<(), Problem> {
    let is_texts = metadata.as_object().is_some_and(|texts| texts.values().all(serde_json::Value::is_string));
    let found = || metadata.to_string().chars().take(80).collect();
    if is_texts { Ok(()) } else { Err(Problem::Unexpected { expected: "texts with names".into(), found: found() }) }
}

/// Refuses bytes that belong to two tensors or to none: the format has neither.
fn refuse_gaps(file: &MappedFile, start: usize, tensors: &mut [(String, StoredTensor)]) -> Result<(), Error> {
    tensors.sort_by_key(|(_, tensor)| (tensor.range.start, tensor.range.end));
    let (mut end, mut before) = (start, None);
    for (name, tensor) in &*tensors {
        let first = tensor.range.start;
        let problem = match before {
            _ if first == end => None,
            Some(before) if first < end => Some(in_bytes_of(before)),
            _ => {
                let expected = format!("at byte {} of the numbers, where those before it end", end - start);
                Some(Problem::Unexpected { expected, found: format!("at byte {}", first - start) })
            }
        };
        if let Some(problem) = problem {
            return Err(file.malformed(format!("tensor `{name}`"), problem));
        }
        (end, before) = (tensor.range.end, Some(name.as_str()));
    }
    if end == file.bytes.len() {
        return Ok(());
    }
    let behind = before.map_or("the header".to_owned(), |name| format!("tensor `{name}`"));
    let (expected, found) = ("the end of the file".into(), format!("{} bytes", file.bytes.len() - end));
    Err(file.malformed(format!("what is behind {behind}"), Problem::Unexpected { expected, found }))
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
    let path = folder.join("model.safetensors.index.json");
    if !path.exists() || single.exists() {
        read(&single, &mut by_name)?;
        return Ok(Tensors { path: single.into(), by_name });
    }
    let Index { weight_map } = json::read(&path)?;
    let error = |name: &str, problem| Error::malformed(&path, format!("`weight_map.{name}`"), problem);
    let mut files: BTreeMap<&String, &String> = BTreeMap::new();
    for (name, file) in &weight_map {
        check_file(folder, file).map_err(|problem| error(name, problem))?;
        files.entry(file).or_insert(name);
    }
    files.keys().try_for_each(|file| read(&folder.join(file), &mut by_name))?;
    for (name, file) in &weight_map {
        let expected = || format!("in `{file}`");
        let found = match by_name.get(name).map(|tensor| tensor.file.name()) {
            Some(found) if found == *file => continue,
            Some(found) => format!("in `{found}`"),
            None => "in none of the files".to_owned(),
        };
        return Err(error(name, Problem::Unexpected { expected: expected(), found }));
    }
    Ok(Tensors { path: path.into(), by_name })
}

/// Whether `name` is that of a file in `folder`, on every system.
fn check_file(folder: &Path, name: &str) -> Result<(), Problem> {
    let is_plain = Path::new(name).file_name().is_some_and(|plain| plain == name) && !name.contains(['/', '\\', '\0']);
    if !is_plain {
        return Err(Problem::NotAFileName { name: name.to_owned() });
    }
    if folder.join(name).is_file() { Ok(()) } else { Err(Problem::NoSuchFile { name: name.to_owned() }) }
}
