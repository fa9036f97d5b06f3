//! Offsets of eight bytes, and lengths that a file does not have.

use std::io::{Read, Result, Seek, SeekFrom};

use super::*;

/// A file of terabytes with a few pieces of content; the rest is zeros.
struct Sparse {
    pieces: Vec<(u64, Vec<u8>)>,
    position: u64,
}

const LENGTH: u64 = 1 << 42;

impl Read for Sparse {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let length = buffer.len().min(usize::try_from(LENGTH.saturating_sub(self.position)).unwrap_or(usize::MAX));
        for (index, byte) in buffer[..length].iter_mut().enumerate() {
            let at = self.position + index as u64;
            let piece = self.pieces.iter().find(|(start, bytes)| (*start..start + bytes.len() as u64).contains(&at));
            *byte = piece.map_or(0, |(start, bytes)| bytes[(at - start) as usize]);
        }
        self.position += length as u64;
        Ok(length)
    }
}

impl Seek for Sparse {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        self.position = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::End(back) => LENGTH.saturating_add_signed(back),
            SeekFrom::Current(ahead) => self.position.saturating_add_signed(ahead),
        };
        Ok(self.position)
    }
}

fn text(value: &str) -> Vec<u8> {
    [&[value.len() as u8], value.as_bytes()].concat()
}

/// Returns a key with offsets of eight bytes.
fn long_key(class: &str, name: &str, offset: u64, object: usize) -> Vec<u8> {
    let names = [text(class), text(name), text("")].concat();
    let key_length = 4 + 2 + 4 + 4 + 2 + 2 + 8 + 8 + names.len();
    let mut key = Vec::new();
    key.extend((key_length as i32 + object as i32).to_be_bytes());
    key.extend(1004_i16.to_be_bytes());
    key.extend((object as i32).to_be_bytes());
    key.extend(0_u32.to_be_bytes());
    key.extend((key_length as i16).to_be_bytes());
    key.extend(1_i16.to_be_bytes());
    key.extend(offset.to_be_bytes());
    key.extend(100_u64.to_be_bytes());
    key.extend(names);
    key
}

/// Returns the bytes of a histogram as ROOT wrote them, without compression.
fn histogram_bytes() -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/root/root-none.root");
    let mut file = RootFile::open(&folder).expect("a ROOT file");
    let directory = file.directory(&["regions", "SR"]).expect("a directory");
    let key = directory.find("kind_D").expect("a histogram");
    file.object(key, "kind_D").expect("readable")
}

fn sparse(keys_length: Option<i32>) -> Sparse {
    let object = histogram_bytes();
    let (keys_offset, offset) = (3 << 40, (3 << 40) + 4096);
    let list = [long_key("", "", keys_offset, 0), vec![0, 0, 0, 1], long_key("TH1D", "far", offset, object.len())];
    let list = list.concat();
    let mut header = b"root".to_vec();
    header.extend(1_064_000_i32.to_be_bytes());
    header.extend(100_i32.to_be_bytes());
    header.extend([LENGTH.to_be_bytes(), LENGTH.to_be_bytes()].concat());
    header.extend([0_i32.to_be_bytes(), 0_i32.to_be_bytes(), 50_i32.to_be_bytes()].concat());
    let mut directory = 1005_i16.to_be_bytes().to_vec();
    directory.extend([0; 8]);
    directory.extend(keys_length.unwrap_or(list.len() as i32).to_be_bytes());
    directory.extend(50_i32.to_be_bytes());
    directory.extend([100_u64.to_be_bytes(), 0_u64.to_be_bytes(), u64::to_be_bytes(keys_offset)].concat());
    let record = [long_key("TH1D", "far", offset, object.len()), object].concat();
    Sparse { pieces: vec![(0, header), (150, directory), (keys_offset, list), (offset, record)], position: 0 }
}

#[test]
fn histograms_beyond_two_gigabytes_are_read() {
    let mut file = RootFile::new(Box::new(sparse(None))).expect("a ROOT file");
    let histogram = file.histogram("far").expect("readable");
    assert_eq!(histogram.values(), [2.0, 3.0, 4.0, 5.0].map(|cell| cell * (1.0 / 3.0)));
}

#[test]
fn a_file_without_a_list_of_keys_was_not_closed() {
    let mut file = RootFile::new(Box::new(sparse(Some(0)))).expect("a ROOT file");
    let error = file.histogram("far").expect_err("not closed");
    assert!(matches!(error, RootFileError::NotClosed), "{error}");
    assert!(error.hint().is_some());
}

#[test]
fn a_negative_length_is_refused() {
    let error = RootFile::new(Box::new(sparse(Some(-1)))).err().expect("damaged");
    assert!(matches!(error, RootFileError::Truncated { .. }), "{error}");
}
