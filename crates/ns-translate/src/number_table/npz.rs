//! Finds the array in an archive of NumPy files (`.npz`), a ZIP archive whose members are stored or
//! deflated (PKWARE, APPNOTE.TXT 6.3).

use super::NumberTableError;
use crate::source::unpacked_limit_now;
use flate2::read::DeflateDecoder;
use std::io::Read;

/// The first bytes of an archive: those of its first member.
pub(super) const MAGIC: &[u8] = b"PK\x03\x04";

const END: &[u8] = b"PK\x05\x06";
const ENTRY: &[u8] = b"PK\x01\x02";

/// A size that is too large for its field, and is in an extra field.
const ELSEWHERE: u64 = 0xffff_ffff;

/// A member of an archive.
#[derive(Debug, Clone)]
struct Member {
    name: String,
    method: u64,
    crc: u64,
    packed: u64,
    unpacked: u64,
    /// Where its local header begins.
    start: u64,
}

/// Returns the bytes of the only NumPy file in the archive `bytes`.
pub(super) fn only_array(bytes: &[u8]) -> Result<Vec<u8>, NumberTableError> {
    let members = members(bytes).ok_or(damaged("the list of its members is not there"))?;
    let mut arrays: Vec<Member> = members.into_iter().filter(|member| member.name.ends_with(".npy")).collect();
    match (arrays.pop(), arrays.is_empty()) {
        (Some(array), true) => unpack(bytes, &array),
        (last, _) => {
            let all = arrays.into_iter().chain(last);
            let names = all.map(|array| array.name.trim_end_matches(".npy").to_owned()).collect();
            Err(NumberTableError::SeveralArrays { names })
        }
    }
}

/// Returns the name and the bytes of every NumPy file in the archive `bytes`.
pub(super) fn arrays(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, NumberTableError> {
    let members = members(bytes).ok_or(damaged("the list of its members is not there"))?;
    let array = |member: Member| {
        let name = member.name.strip_suffix(".npy")?.to_owned();
        Some(unpack(bytes, &member).map(|array| (name, array)))
    };
    members.into_iter().filter_map(array).collect()
}

fn damaged(reason: &'static str) -> NumberTableError {
    NumberTableError::Damaged { reason }
}

/// Returns the number of `size` bytes at `at`.
fn field(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let found = bytes.get(at..at.checked_add(size)?)?;
    Some(found.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Returns the members that the directory at the end of the archive lists.
fn members(bytes: &[u8]) -> Option<Vec<Member>> {
    let end = bytes.windows(END.len()).rposition(|window| window == END)?;
    // The last field of the record, without which the archive is cut off.
    field(bytes, end + 20, 2)?;
    let n_members = field(bytes, end + 10, 2)?;
    let mut at = usize::try_from(field(bytes, end + 16, 4)?).ok()?;
    let mut members = Vec::new();
    for _ in 0..n_members {
        if !bytes.get(at..)?.starts_with(ENTRY) {
            return None;
        }
        let [name_len, extra_len, comment_len] = [28, 30, 32].map(|offset| field(bytes, at + offset, 2));
        let name_end = at + 46 + usize::try_from(name_len?).ok()?;
        let extra_end = name_end + usize::try_from(extra_len?).ok()?;
        let mut sizes = [20, 24, 42].map(|offset| field(bytes, at + offset, 4));
        large_sizes(bytes.get(name_end..extra_end)?, &mut sizes);
        members.push(Member {
            name: String::from_utf8_lossy(bytes.get(at + 46..name_end)?).into_owned(),
            method: field(bytes, at + 10, 2)?,
            crc: field(bytes, at + 16, 4)?,
            packed: sizes[0]?,
            unpacked: sizes[1]?,
            start: sizes[2]?,
        });
        at = extra_end + usize::try_from(comment_len?).ok()?;
    }
    Some(members)
}

/// Replaces the sizes (packed, unpacked, start) that are in the extra field for large files.
fn large_sizes(mut extra: &[u8], sizes: &mut [Option<u64>; 3]) {
    while let (Some(id), Some(len)) = (field(extra, 0, 2), field(extra, 2, 2)) {
        let end = 4 + len as usize;
        let Some(content) = extra.get(4..end) else { return };
        if id == 1 {
            let mut place = 0;
            for which in [1, 0, 2] {
                if sizes[which] == Some(ELSEWHERE) {
                    sizes[which] = field(content, place, 8);
                    place += 8;
                }
            }
        }
        extra = &extra[end..];
    }
}

/// Returns the bytes of `member`, unpacked.
fn unpack(bytes: &[u8], member: &Member) -> Result<Vec<u8>, NumberTableError> {
    const CUT: NumberTableError = NumberTableError::Damaged { reason: "a member of the archive is cut off" };
    let start = usize::try_from(member.start).map_err(|_| CUT)?;
    let name_and_extra = start.checked_add(26).and_then(|at| Some(field(bytes, at, 2)? + field(bytes, at + 2, 2)?));
    let first = name_and_extra.and_then(|len| start.checked_add(30 + len as usize)).ok_or(CUT)?;
    let end = usize::try_from(member.packed).ok().and_then(|len| first.checked_add(len)).ok_or(CUT)?;
    let packed = bytes.get(first..end).ok_or(CUT)?;
    let unpacked = match member.method {
        0 => packed.to_vec(),
        8 => {
            if member.unpacked > unpacked_limit_now() {
                return Err(damaged("a member of the archive unpacks to more bytes than allowed"));
            }
            let mut unpacked = Vec::new();
            let read = DeflateDecoder::new(packed).take(member.unpacked).read_to_end(&mut unpacked);
            read.map_err(|_| damaged("a member of the archive cannot be unpacked"))?;
            unpacked
        }
        _ => return Err(damaged("a member of the archive is packed in an unknown way")),
    };
    if u64::from(crc32fast::hash(&unpacked)) != member.crc {
        return Err(damaged("a member of the archive does not match its checksum"));
    }
    Ok(unpacked)
}
