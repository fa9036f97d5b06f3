//! Unpacks objects: blocks of up to 16 MB, each with its algorithm and both of its lengths.

use std::io::Read;

use crate::error::CompressionProblem;
use crate::zstandard::zstandard_reader;

/// Two letters, the method, and two lengths of three bytes.
const HEADER: usize = 9;

/// The checksum before the data of an LZ4 block.
const LZ4_CHECKSUM: usize = 8;

/// The most memory that the dictionary of an LZMA block may ask for, in KiB. The highest level of
/// ROOT has 64 MiB.
const LZMA_MEMORY_KIB: u32 = 80 << 10;

/// Returns the `length` bytes that the blocks in `bytes` unpack to. Memory grows with what is
/// unpacked, not with what the header of a block says.
pub(crate) fn unpack(mut bytes: &[u8], length: usize) -> Result<Vec<u8>, CompressionProblem> {
    let mut unpacked = Vec::new();
    while unpacked.len() < length {
        let (header, rest) = bytes.split_at_checked(HEADER).ok_or(CompressionProblem::Length)?;
        let (packed_length, block_length) = (three_bytes(&header[3..6]), three_bytes(&header[6..9]));
        let (block, rest) = rest.split_at_checked(packed_length).ok_or(CompressionProblem::Length)?;
        if block_length == 0 || block_length > length - unpacked.len() {
            return Err(CompressionProblem::Length);
        }
        unpack_block(&header[..2], block, block_length, &mut unpacked)?;
        bytes = rest;
    }
    Ok(unpacked)
}

/// Returns a length: the lowest byte comes first.
fn three_bytes(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte))
}

/// Appends the `length` bytes that `block` unpacks to.
fn unpack_block(letters: &[u8], block: &[u8], length: usize, unpacked: &mut Vec<u8>) -> Result<(), CompressionProblem> {
    match letters {
        b"ZL" => append(flate2::read::ZlibDecoder::new(block), "zlib", length, unpacked),
        // ROOT's own compressor, before it used zlib.
        b"CS" => append(flate2::read::DeflateDecoder::new(block), "deflate", length, unpacked),
        b"XZ" => append(lzma_rust2::XzReader::new_mem_limit(block, false, LZMA_MEMORY_KIB), "LZMA", length, unpacked),
        b"L4" => append_lz4(block, length, unpacked),
        b"ZS" => append_zstd(block, length, unpacked),
        other => Err(CompressionProblem::Unknown(String::from_utf8_lossy(other).into_owned())),
    }
}

/// Appends exactly the `length` bytes that `reader` has.
fn append(
    reader: impl Read,
    name: &'static str,
    length: usize,
    unpacked: &mut Vec<u8>,
) -> Result<(), CompressionProblem> {
    let before = unpacked.len();
    // One byte more than allowed tells a block that is too long.
    let limit = length as u64 + 1;
    reader.take(limit).read_to_end(unpacked).map_err(|_| CompressionProblem::Invalid(name))?;
    if unpacked.len() - before == length { Ok(()) } else { Err(CompressionProblem::Length) }
}

fn append_lz4(block: &[u8], length: usize, unpacked: &mut Vec<u8>) -> Result<(), CompressionProblem> {
    let (checksum, data) = block.split_at_checked(LZ4_CHECKSUM).ok_or(CompressionProblem::Length)?;
    if twox_hash::XxHash64::oneshot(0, data).to_be_bytes() != *checksum {
        return Err(CompressionProblem::Checksum);
    }
    let before = unpacked.len();
    unpacked.resize(before + length, 0);
    match lz4_flex::block::decompress_into(data, &mut unpacked[before..]) {
        Ok(written) if written == length => Ok(()),
        Ok(_) => Err(CompressionProblem::Length),
        Err(_) => Err(CompressionProblem::Invalid("LZ4")),
    }
}

fn append_zstd(block: &[u8], length: usize, unpacked: &mut Vec<u8>) -> Result<(), CompressionProblem> {
    let reader = zstandard_reader(block).map_err(|_| CompressionProblem::Invalid("Zstandard"))?;
    append(reader, "Zstandard", length, unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(letters: [u8; 2], data: &[u8], length: usize) -> Vec<u8> {
        let three = |n: usize| [n as u8, (n >> 8) as u8, (n >> 16) as u8];
        [&letters[..], &[8], &three(data.len()), &three(length), data].concat()
    }

    fn lz4(text: &[u8]) -> Vec<u8> {
        let data = lz4_flex::block::compress(text);
        [&twox_hash::XxHash64::oneshot(0, &data).to_be_bytes()[..], &data].concat()
    }

    #[test]
    fn blocks_are_joined() {
        let text = b"one block after another ".repeat(20);
        let packed = lz4(&text);
        let zstd = zstd::bulk::compress(&text, 3).expect("compressible");
        let both = [block(*b"L4", &packed, text.len()), block(*b"ZS", &zstd, text.len())].concat();
        assert_eq!(unpack(&both, 2 * text.len()), Ok(text.repeat(2)));
    }

    #[test]
    fn a_changed_byte_of_an_lz4_block_is_noticed() {
        let mut packed = lz4(b"some text some text some text");
        let last = packed.len() - 1;
        packed[last] ^= 1;
        assert_eq!(unpack(&block(*b"L4", &packed, 29), 29), Err(CompressionProblem::Checksum));
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        let packed = lz4(b"some text");
        assert_eq!(unpack(&block(*b"L4", &packed, 8), 8), Err(CompressionProblem::Invalid("LZ4")));
        assert_eq!(unpack(&block(*b"L4", &packed, 10), 10), Err(CompressionProblem::Length));
        assert_eq!(unpack(&block(*b"L4", &packed, 9), 8), Err(CompressionProblem::Length));
        assert_eq!(unpack(&block(*b"L4", &packed, 0), 9), Err(CompressionProblem::Length));
        assert_eq!(unpack(&block(*b"L4", &packed, 9)[..12], 9), Err(CompressionProblem::Length));
        assert_eq!(unpack(&block(*b"??", &packed, 9), 9), Err(CompressionProblem::Unknown("??".to_owned())));
    }
}
