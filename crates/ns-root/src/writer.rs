//! Writes a ROOT file with histograms in directories.
//!
//! Dates are fixed and the identifier is a hash of the contents, so that the same histograms make
//! the same bytes. A file is made in memory, and its offsets have four bytes.

use std::collections::HashSet;
use std::hash::Hasher as _;
use std::io::Write as _;

use twox_hash::XxHash64;

use crate::error::RootWriteError;
use crate::histogram::Histogram;
use crate::layouts::write_layouts;
use crate::output::Output;
use crate::write_histogram::write_histogram;

/// The version of ROOT in the header: the first whose classes have the layouts that are written.
const VERSION: i32 = 61400;

/// Where the first record begins.
const BEGIN: usize = 100;

/// 1 January 1995, the first day that ROOT can write.
const DATE: u32 = (1 << 22) | (1 << 17);

/// The compression of new objects: zlib at its lowest level.
const COMPRESSION: i32 = 101;

/// Objects of fewer bytes are not compressed, as in ROOT.
const LEAST_COMPRESSED: usize = 256;

/// The most bytes of a compressed block, whose lengths have three bytes.
const BLOCK: usize = 0xff_ffff;

/// The longest name or title: the length of a key has two bytes.
const NAME_LIMIT: usize = 8000;

/// The end of a file whose offsets have four bytes.
const FILE_LIMIT: u64 = 2_000_000_000;

/// A ROOT file that is being made.
///
/// # Example
///
/// ```
/// use ns_root::{Histogram, RootFile, RootWriter};
///
/// let histogram = Histogram::new("signal", "", vec![0.0, 1.0, 4.0], &[5.0, 7.0], Some(&[1.0, 2.0]))?;
/// let mut writer = RootWriter::new("data.root")?;
/// writer.add("SR/nominal", &histogram)?;
/// let bytes = writer.finish()?;
///
/// let back = RootFile::from_bytes(bytes).and_then(|mut file| file.histogram("SR/nominal/signal"));
/// assert_eq!(back.expect("what was written"), histogram);
/// # Ok::<(), ns_root::RootWriteError>(())
/// ```
#[derive(Debug)]
pub struct RootWriter {
    output: Output,
    folders: Vec<Folder>,
}

/// A directory that is being made.
#[derive(Debug)]
struct Folder {
    path: String,
    name: String,
    parent: usize,
    /// The bytes of the names in front of its record, as the record has them.
    name_length: usize,
    /// Where its key begins.
    offset: usize,
    /// Where its record begins.
    record: usize,
    keys: Vec<Header>,
    names: HashSet<String>,
}

/// What the key of an object says.
#[derive(Debug, Clone)]
struct Header {
    class: &'static str,
    name: String,
    title: String,
    /// The bytes of the object as they are in the file, and unpacked.
    lengths: [usize; 2],
    offset: usize,
    /// Where the key of the directory begins.
    parent: usize,
}

impl Header {
    /// Returns the bytes of the key.
    fn length(&self) -> usize {
        let text = |text: &str| text.len() + if text.len() < usize::from(u8::MAX) { 1 } else { 5 };
        26 + text(self.class) + text(&self.name) + text(&self.title)
    }

    fn write(&self, output: &mut Output) {
        let length = self.length();
        output.i32((length + self.lengths[0]) as i32);
        output.i16(4);
        output.i32(self.lengths[1] as i32);
        output.u32(DATE);
        output.i16(length as i16);
        output.i16(1);
        output.i32(self.offset as i32);
        output.i32(self.parent as i32);
        output.string(self.class);
        output.string(&self.name);
        output.string(&self.title);
    }
}

impl RootWriter {
    /// Returns a file without objects; `name` is what the file calls itself.
    ///
    /// # Errors
    ///
    /// A name that is too long.
    pub fn new(name: &str) -> Result<Self, RootWriteError> {
        require_short(name)?;
        let mut output = Output { bytes: vec![0; BEGIN] };
        let mut payload = Output::default();
        payload.string(name);
        payload.string("");
        let names = payload.bytes.len();
        payload.bytes.resize(names + DirectoryOffsets::LENGTH, 0);
        let header = put(&mut output, header("TFile", name, "", 0), &payload.bytes);
        let name_length = header.length() + names;
        let top = Folder {
            path: String::new(),
            name: name.to_owned(),
            parent: 0,
            name_length,
            offset: BEGIN,
            record: BEGIN + name_length,
            keys: Vec::new(),
            names: HashSet::new(),
        };
        Ok(Self { output, folders: vec![top] })
    }

    /// Adds a histogram to the directory `directory`, whose steps are separated by `/`; the empty
    /// path is the top of the file.
    ///
    /// # Errors
    ///
    /// A name that ROOT cannot have, or that is in the directory already, and a file that becomes
    /// too long.
    pub fn add(&mut self, directory: &str, histogram: &Histogram) -> Result<(), RootWriteError> {
        require_short(&histogram.title)?;
        let folder = self.folder(directory)?;
        self.claim(folder, &histogram.name)?;
        let mut object = Output::default();
        write_histogram(&mut object, histogram);
        let packed = packed(&object.bytes);
        let header = Header {
            lengths: [packed.len(), object.bytes.len()],
            ..header("TH1D", &histogram.name, &histogram.title, self.folders[folder].offset)
        };
        let written = put(&mut self.output, header, &packed);
        self.folders[folder].keys.push(written);
        self.require_room()
    }

    /// Returns the bytes of the file.
    ///
    /// # Errors
    ///
    /// A file that is too long.
    pub fn finish(mut self) -> Result<Vec<u8>, RootWriteError> {
        let name = self.folders[0].name.clone();
        let mut offsets = Vec::new();
        for folder in &self.folders {
            offsets.push(write_keys(&mut self.output, folder));
        }
        let mut layouts = Output::default();
        write_layouts(&mut layouts);
        let packed = packed(&layouts.bytes);
        let info = Header {
            lengths: [packed.len(), layouts.bytes.len()],
            ..header("TList", "StreamerInfo", "Doubly linked list", BEGIN)
        };
        let info = put(&mut self.output, info, &packed);
        let free = write_free(&mut self.output, &name);
        self.require_room()?;
        let end = self.output.bytes.len();
        let identifier = identifier(&self.output.bytes);
        for (folder, keys) in self.folders.iter().zip(offsets) {
            let record = DirectoryOffsets { keys, identifier }.record(folder, self.folders[folder.parent].offset);
            self.output.bytes[folder.record..folder.record + record.len()].copy_from_slice(&record);
        }
        let first = first_bytes(end, &free, self.folders[0].name_length, &info, identifier);
        self.output.bytes[..first.len()].copy_from_slice(&first);
        Ok(self.output.bytes)
    }

    /// Returns the index of the directory `path`, made if it is not there.
    fn folder(&mut self, path: &str) -> Result<usize, RootWriteError> {
        let (mut index, mut reached) = (0, String::new());
        for step in path.split('/').filter(|step| !step.is_empty()) {
            reached = if reached.is_empty() { step.to_owned() } else { format!("{reached}/{step}") };
            index = match self.folders.iter().position(|folder| folder.path == reached) {
                Some(known) if known > 0 => known,
                _ => self.new_folder(index, step, &reached)?,
            };
        }
        Ok(index)
    }

    fn new_folder(&mut self, parent: usize, name: &str, path: &str) -> Result<usize, RootWriteError> {
        self.claim(parent, name)?;
        let header = header("TDirectory", name, "", self.folders[parent].offset);
        let header = put(&mut self.output, header, &[0; DirectoryOffsets::LENGTH]);
        let (offset, length) = (header.offset, header.length());
        self.folders[parent].keys.push(header);
        self.folders.push(Folder {
            path: path.to_owned(),
            name: name.to_owned(),
            parent,
            name_length: length,
            offset,
            record: offset + length,
            keys: Vec::new(),
            names: HashSet::new(),
        });
        Ok(self.folders.len() - 1)
    }

    /// Takes a name in a directory.
    fn claim(&mut self, folder: usize, name: &str) -> Result<(), RootWriteError> {
        require_short(name)?;
        if name.is_empty() || name.contains(['/', '\0', ';']) {
            return Err(RootWriteError::Name { name: name.to_owned() });
        }
        if self.folders[folder].names.insert(name.to_owned()) {
            return Ok(());
        }
        Err(RootWriteError::Twice { name: name.to_owned(), directory: self.folders[folder].path.clone() })
    }

    fn require_room(&self) -> Result<(), RootWriteError> {
        let length = self.output.bytes.len() as u64;
        if length < FILE_LIMIT { Ok(()) } else { Err(RootWriteError::TooLarge { limit: FILE_LIMIT }) }
    }
}

fn require_short(name: &str) -> Result<(), RootWriteError> {
    if name.len() <= NAME_LIMIT {
        return Ok(());
    }
    Err(RootWriteError::LongName { length: name.len(), limit: NAME_LIMIT })
}

/// Returns the key of an object whose bytes are not known yet.
fn header(class: &'static str, name: &str, title: &str, parent: usize) -> Header {
    Header { class, name: name.to_owned(), title: title.to_owned(), lengths: [0; 2], offset: 0, parent }
}

/// Puts a record: the key with its place, and the bytes of the object.
fn put(output: &mut Output, header: Header, bytes: &[u8]) -> Header {
    let unpacked = header.lengths[1].max(bytes.len());
    let header = Header { lengths: [bytes.len(), unpacked], offset: output.bytes.len(), ..header };
    header.write(output);
    output.bytes.extend_from_slice(bytes);
    header
}

/// Returns bytes compressed in blocks, or as they are where that is not shorter.
fn packed(bytes: &[u8]) -> Vec<u8> {
    if bytes.len() < LEAST_COMPRESSED {
        return bytes.to_vec();
    }
    let three = |length: usize| [length as u8, (length >> 8) as u8, (length >> 16) as u8];
    let mut packed = Vec::new();
    for block in bytes.chunks(BLOCK) {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        let Ok(data) = encoder.write_all(block).and_then(|()| encoder.finish()) else { return bytes.to_vec() };
        if data.len() > BLOCK {
            return bytes.to_vec();
        }
        packed.extend_from_slice(b"ZL\x08");
        packed.extend_from_slice(&three(data.len()));
        packed.extend_from_slice(&three(block.len()));
        packed.extend_from_slice(&data);
    }
    if packed.len() < bytes.len() { packed } else { bytes.to_vec() }
}

/// Puts the list of the keys of a directory. Returns where its record begins, and how long it is.
fn write_keys(output: &mut Output, folder: &Folder) -> [usize; 2] {
    let mut list = Output::default();
    list.i32(folder.keys.len() as i32);
    folder.keys.iter().for_each(|key| key.write(&mut list));
    let class = if folder.path.is_empty() { "TFile" } else { "TDirectory" };
    let written = put(output, header(class, &folder.name, "", folder.offset), &list.bytes);
    [written.offset, output.bytes.len() - written.offset]
}

/// Puts the list of free segments: one, after the end of the file.
fn write_free(output: &mut Output, name: &str) -> Header {
    let free = header("TFile", name, "", BEGIN);
    let end = output.bytes.len() + free.length() + 10;
    let mut list = Output::default();
    list.i16(1);
    list.i32(end as i32);
    list.i32(FILE_LIMIT as i32);
    put(output, free, &list.bytes)
}

/// Returns an identifier that depends on all bytes.
fn identifier(bytes: &[u8]) -> [u8; 16] {
    let hash = |seed: u64| {
        let mut hasher = XxHash64::with_seed(seed);
        hasher.write(bytes);
        hasher.finish().to_be_bytes()
    };
    let mut identifier = [0; 16];
    identifier[..8].copy_from_slice(&hash(0));
    identifier[8..].copy_from_slice(&hash(1));
    identifier
}

/// What the record of a directory says beside its name.
struct DirectoryOffsets {
    /// Where the list of its keys begins, and how long it is.
    keys: [usize; 2],
    identifier: [u8; 16],
}

impl DirectoryOffsets {
    /// The bytes of a record; the last twelve are for offsets of eight bytes.
    const LENGTH: usize = 60;

    fn record(&self, folder: &Folder, parent: usize) -> Vec<u8> {
        let mut record = Output::default();
        record.i16(5);
        record.u32(DATE);
        record.u32(DATE);
        record.i32(self.keys[1] as i32);
        record.i32(folder.name_length as i32);
        record.i32(folder.offset as i32);
        record.i32(if folder.path.is_empty() { 0 } else { parent as i32 });
        record.i32(self.keys[0] as i32);
        record.u16(1);
        record.bytes.extend_from_slice(&self.identifier);
        record.bytes.resize(Self::LENGTH, 0);
        record.bytes
    }
}

/// Returns the header of the file.
fn first_bytes(end: usize, free: &Header, name_length: usize, info: &Header, identifier: [u8; 16]) -> Vec<u8> {
    let mut first = Output { bytes: b"root".to_vec() };
    first.i32(VERSION);
    first.i32(BEGIN as i32);
    first.i32(end as i32);
    first.i32(free.offset as i32);
    first.i32((free.length() + free.lengths[0]) as i32);
    first.i32(1);
    first.i32(name_length as i32);
    // Offsets have four bytes.
    first.u8(4);
    first.i32(COMPRESSION);
    first.i32(info.offset as i32);
    first.i32((info.length() + info.lengths[0]) as i32);
    first.u16(1);
    first.bytes.extend_from_slice(&identifier);
    first.bytes
}
