//! Safetensors: a length, a JSON header, and the numbers. Every claim of the header is checked
//! against the file.
//!
//! The header is parsed and validated by Hugging Face's own crate. Here are the refusals that it
//! does not have (duplicate keys, a header that does not begin with `{`, indices of shards that
//! lie), and the place and the reason for those that it has.

use std::collections::hash_map;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use ::safetensors::{Dtype, SafeTensors};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde_json::Value;

use super::json;
use super::mapped::MappedFile;
use super::tensors::{StoredTensor, Tensors, in_bytes_of};
use crate::error::{Error, Problem};

/// The longest header that the format allows, in bytes.
const LONGEST_HEADER: u64 = 100_000_000;

/// Adds the tensors of one file to `tensors`.
pub(crate) fn read(path: &Path, tensors: &mut HashMap<String, StoredTensor>) -> Result<(), Error> {
    let file = MappedFile::open(path)?;
    let (text, start) = header(&file)?;
    let metadata = match SafeTensors::read_metadata(&file.bytes) {
        Ok((_, metadata)) => metadata,
        Err(error) => {
            diagnose(&file, text, start)?;
            let problem = Problem::Json { message: error.to_string() };
            return Err(file.malformed("the header", problem));
        }
    };
    let mut here: Vec<(String, StoredTensor)> = Vec::new();
    for (name, info) in metadata.tensors() {
        let (first, last) = info.data_offsets;
        let (dtype, shape) = (info.dtype.to_string(), info.shape.clone());
        here.push((name, StoredTensor { file: file.clone(), dtype, shape, range: start + first..start + last }));
    }
    // In one order, so that of several errors the same one is reported.
    here.sort_by(|(a, _), (b, _)| a.cmp(b));
    here.into_iter().try_for_each(|(name, tensor)| insert(tensors, name, tensor))
}

/// One tensor in the header, as it is written.
#[derive(Debug, serde::Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

/// A tensor whose entry is consistent in itself: its name and its range of the numbers.
struct Listed {
    name: String,
    first: u64,
    last: u64,
}

/// Finds what is wrong with a header that the parser refuses: the tensor, the field and the reason.
fn diagnose(file: &MappedFile, text: &str, start: usize) -> Result<(), Error> {
    let mut entries: BTreeMap<String, Value> =
        json::parse(text).map_err(|problem| file.malformed("the header", problem))?;
    if let Some(metadata) = entries.remove("__metadata__") {
        check_metadata(&metadata).map_err(|problem| file.malformed("`__metadata__`", problem))?;
    }
    let available = (file.bytes.len() - start) as u64;
    let mut listed = Vec::new();
    for (name, entry) in entries {
        let field = || format!("tensor `{name}`");
        let entry: Entry = serde_json::from_value(entry)
            .map_err(|error| file.malformed(field(), Problem::Json { message: error.to_string() }))?;
        let [first, last] = check(entry, available).map_err(|problem| file.malformed(field(), problem))?;
        listed.push(Listed { name, first, last });
    }
    refuse_gaps(file, available, listed)
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

/// Refuses metadata that are not texts with names.
fn check_metadata(metadata: &Value) -> Result<(), Problem> {
    let is_texts = metadata.as_object().is_some_and(|texts| texts.values().all(Value::is_string));
    let found = || metadata.to_string().chars().take(80).collect();
    if is_texts { Ok(()) } else { Err(Problem::Unexpected { expected: "texts with names".into(), found: found() }) }
}

/// Refuses bytes that belong to two tensors or to none: the format has neither.
fn refuse_gaps(file: &MappedFile, available: u64, mut tensors: Vec<Listed>) -> Result<(), Error> {
    tensors.sort_by_key(|tensor| (tensor.first, tensor.last));
    let (mut end, mut before) = (0, None);
    for Listed { name, first, last } in &tensors {
        let problem = match before {
            _ if *first == end => None,
            Some(before) if *first < end => Some(in_bytes_of(before)),
            _ => {
                let expected = format!("at byte {end} of the numbers, where those before it end");
                Some(Problem::Unexpected { expected, found: format!("at byte {first}") })
            }
        };
        if let Some(problem) = problem {
            return Err(file.malformed(format!("tensor `{name}`"), problem));
        }
        (end, before) = (*last, Some(name.as_str()));
    }
    if end == available {
        return Ok(());
    }
    let behind = before.map_or("the header".to_owned(), |name| format!("tensor `{name}`"));
    let (expected, found) = ("the end of the file".into(), format!("{} bytes", available - end));
    Err(file.malformed(format!("what is behind {behind}"), Problem::Unexpected { expected, found }))
}

/// Returns the header's text, and where the numbers start.
fn header(file: &MappedFile) -> Result<(&str, usize), Error> {
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
    let text = std::str::from_utf8(header).map_err(|_| file.malformed("the header", Problem::NotUtf8))?;
    if !text.starts_with('{') {
        let found = text.chars().next().map_or("empty".to_owned(), |first| format!("{:?}", first.to_string()));
        let problem = Problem::Unexpected { expected: "an object, from `{` on".into(), found };
        return Err(file.malformed("the header", problem));
    }
    json::refuse_duplicate_keys(text).map_err(|problem| file.malformed("the header", problem))?;
    Ok((text, 8 + header.len()))
}

/// Returns the range of the numbers that an entry claims, if it agrees with the shape and the file.
fn check(entry: Entry, available: u64) -> Result<[u64; 2], Problem> {
    let Entry { dtype, shape, data_offsets: [first, last] } = entry;
    let bits = bits(&dtype).ok_or_else(|| Problem::Unsupported { what: "the type", found: dtype.clone() })?;
    if first > last {
        let value = format!("{first}..{last}");
        return Err(Problem::OutOfRange { value, expected: "`data_offsets` ascend" });
    }
    if last > available {
        return Err(Problem::Truncated { needed: last, available });
    }
    let n_bits = shape.iter().try_fold(bits, |bits, &size| bits.checked_mul(size));
    if n_bits.is_none_or(|n_bits| !n_bits.is_multiple_of(8) || n_bits / 8 != last - first) {
        let expected = format!("the size of shape {shape:?} with type {dtype}");
        return Err(Problem::Unexpected { expected, found: format!("{} bytes", last - first) });
    }
    // Sizes of a shape with a zero in it are not bounded by the file.
    if shape.iter().try_fold(1_usize, |n, &size| n.checked_mul(usize::try_from(size).ok()?)).is_none() {
        return Err(Problem::OutOfRange { value: "the shape".into(), expected: "sizes that can be counted" });
    }
    Ok([first, last])
}

/// Returns the bits of one number of the type `dtype`, if the format has it.
fn bits(dtype: &str) -> Option<u64> {
    let deserializer: serde::de::value::StrDeserializer<'_, serde::de::value::Error> = dtype.into_deserializer();
    Dtype::deserialize(deserializer).ok().map(|dtype| dtype.bitsize() as u64)
}

/// The index of a model in several files.
#[derive(Debug, serde::Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// Reads the tensors of a model's folder: `model.safetensors`, or the files that
/// `model.safetensors.index.json` lists.
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

/// Refuses a `name` that is not that of a file in `folder`, on every system.
fn check_file(folder: &Path, name: &str) -> Result<(), Problem> {
    let is_plain = Path::new(name).file_name().is_some_and(|plain| plain == name) && !name.contains(['/', '\\', '\0']);
    if !is_plain {
        return Err(Problem::NotAFileName { name: name.to_owned() });
    }
    if folder.join(name).is_file() { Ok(()) } else { Err(Problem::NoSuchFile { name: name.to_owned() }) }
}
