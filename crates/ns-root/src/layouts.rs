//! The layouts of the classes in a histogram: ROOT's `TStreamerInfo`, by which versions of ROOT
//! with other members read what is written here.
//!
//! Names, types, sizes, versions and checksums are those of ROOT 6.40, whose `TH1D` has had these
//! members since 6.14. Two titles have a meaning: they say that a pointer is never null, and which
//! member counts the elements of another.

use crate::output::Output;

/// A class: its members in the order in which they are written.
struct ClassLayout {
    name: &'static str,
    version: i32,
    checksum: u32,
    members: &'static [Member],
}

/// A base class or a member.
enum Member {
    /// A base class with its version, its checksum and the number of its type.
    Base(&'static str, i32, u32, i32),
    /// A number: its name and the name, number and size of its type.
    Number(&'static str, NumberType),
    /// A `TString`.
    Text(&'static str),
    /// An object of a class with this size that derives from `TObject`.
    Object(&'static str, &'static str, i32),
    /// A `TArrayD`.
    Array(&'static str),
    /// A pointer to an object of this class, with a title; it may be null if the title is empty.
    Pointer(&'static str, &'static str, &'static str),
    /// An array of doubles, and the member that counts them.
    Doubles(&'static str, &'static str),
}

/// A type of numbers: its name, its number in ROOT, and its bytes.
struct NumberType(&'static str, i32, i32);

const SHORT: NumberType = NumberType("short", 2, 2);
const INT: NumberType = NumberType("int", 3, 4);
const FLOAT: NumberType = NumberType("float", 5, 4);
const COUNTER: NumberType = NumberType("int", 6, 4);
const DOUBLE: NumberType = NumberType("double", 8, 8);
const UNSIGNED_SHORT: NumberType = NumberType("unsigned short", 12, 2);
const UNSIGNED: NumberType = NumberType("unsigned int", 13, 4);
const BITS: NumberType = NumberType("unsigned int", 15, 4);
const BOOL: NumberType = NumberType("bool", 18, 1);
const ERROR_OPTION: NumberType = NumberType("TH1::EBinErrorOpt", 3, 4);
const OVERFLOWS: NumberType = NumberType("TH1::EStatOverflows", 3, 4);

const OF_H1: u32 = 0x1c37_40c4;
const OF_ARRAY: u32 = 0x7139_ef34;
const OF_NAMED: u32 = 0xdfb7_4a3c;
const OF_OBJECT: u32 = 0x901b_c02d;
const OF_LINE: u32 = 0x9407_4549;
const OF_FILL: u32 = 0xffd9_2a92;
const OF_MARKER: u32 = 0x291d_8bec;
const OF_AXIS: u32 = 0x5a49_6e70;
const OF_AXIS_LOOK: u32 = 0x5c6f_ff3e;
const OF_LIST: u32 = 0x69c5_c3bb;
const OF_SEQUENCE: u32 = 0xfc6c_3bc6;
const OF_COLLECTION: u32 = 0x57e3_cb9c;

use Member::{Array, Base, Doubles, Number, Object, Pointer, Text};

const CLASSES: &[ClassLayout] = &[
    ClassLayout {
        name: "TH1D",
        version: 3,
        checksum: 0xf9b1_569f,
        members: &[Base("TH1", 8, OF_H1, 0), Base("TArrayD", 1, OF_ARRAY, 0)],
    },
    ClassLayout {
        name: "TH1",
        version: 8,
        checksum: OF_H1,
        members: &[
            Base("TNamed", 1, OF_NAMED, 67),
            Base("TAttLine", 2, OF_LINE, 0),
            Base("TAttFill", 2, OF_FILL, 0),
            Base("TAttMarker", 2, OF_MARKER, 0),
            Number("fNcells", INT),
            Object("fXaxis", "TAxis", 216),
            Object("fYaxis", "TAxis", 216),
            Object("fZaxis", "TAxis", 216),
            Number("fBarOffset", SHORT),
            Number("fBarWidth", SHORT),
            Number("fEntries", DOUBLE),
            Number("fTsumw", DOUBLE),
            Number("fTsumw2", DOUBLE),
            Number("fTsumwx", DOUBLE),
            Number("fTsumwx2", DOUBLE),
            Number("fMaximum", DOUBLE),
            Number("fMinimum", DOUBLE),
            Number("fNormFactor", DOUBLE),
            Array("fContour"),
            Array("fSumw2"),
            Text("fOption"),
            Pointer("fFunctions", "TList*", "->"),
            Number("fBufferSize", COUNTER),
            Doubles("fBuffer", "fBufferSize"),
            Number("fBinStatErrOpt", ERROR_OPTION),
            Number("fStatOverflows", OVERFLOWS),
        ],
    },
    ClassLayout {
        name: "TNamed",
        version: 1,
        checksum: OF_NAMED,
        members: &[Base("TObject", 1, OF_OBJECT, 66), Text("fName"), Text("fTitle")],
    },
    ClassLayout {
        name: "TObject",
        version: 1,
        checksum: OF_OBJECT,
        members: &[Number("fUniqueID", UNSIGNED), Number("fBits", BITS)],
    },
    ClassLayout {
        name: "TAttLine",
        version: 2,
        checksum: OF_LINE,
        members: &[Number("fLineColor", SHORT), Number("fLineStyle", SHORT), Number("fLineWidth", SHORT)],
    },
    ClassLayout {
        name: "TAttFill",
        version: 2,
        checksum: OF_FILL,
        members: &[Number("fFillColor", SHORT), Number("fFillStyle", SHORT)],
    },
    ClassLayout {
        name: "TAttMarker",
        version: 2,
        checksum: OF_MARKER,
        members: &[Number("fMarkerColor", SHORT), Number("fMarkerStyle", SHORT), Number("fMarkerSize", FLOAT)],
    },
    ClassLayout {
        name: "TAxis",
        version: 10,
        checksum: OF_AXIS,
        members: &[
            Base("TNamed", 1, OF_NAMED, 67),
            Base("TAttAxis", 4, OF_AXIS_LOOK, 0),
            Number("fNbins", INT),
            Number("fXmin", DOUBLE),
            Number("fXmax", DOUBLE),
            Array("fXbins"),
            Number("fFirst", INT),
            Number("fLast", INT),
            Number("fBits2", UNSIGNED_SHORT),
            Number("fTimeDisplay", BOOL),
            Text("fTimeFormat"),
            Pointer("fLabels", "THashList*", ""),
            Pointer("fModLabs", "TList*", ""),
        ],
    },
    ClassLayout {
        name: "TAttAxis",
        version: 4,
        checksum: OF_AXIS_LOOK,
        members: &[
            Number("fNdivisions", INT),
            Number("fAxisColor", SHORT),
            Number("fLabelColor", SHORT),
            Number("fLabelFont", SHORT),
            Number("fLabelOffset", FLOAT),
            Number("fLabelSize", FLOAT),
            Number("fTickLength", FLOAT),
            Number("fTitleOffset", FLOAT),
            Number("fTitleSize", FLOAT),
            Number("fTitleColor", SHORT),
            Number("fTitleFont", SHORT),
        ],
    },
    ClassLayout { name: "THashList", version: 0, checksum: 0xcc7e_49c1, members: &[Base("TList", 5, OF_LIST, 0)] },
    ClassLayout { name: "TList", version: 5, checksum: OF_LIST, members: &[Base("TSeqCollection", 0, OF_SEQUENCE, 0)] },
    ClassLayout {
        name: "TSeqCollection",
        version: 0,
        checksum: OF_SEQUENCE,
        members: &[Base("TCollection", 3, OF_COLLECTION, 0)],
    },
    ClassLayout {
        name: "TCollection",
        version: 3,
        checksum: OF_COLLECTION,
        members: &[Base("TObject", 1, OF_OBJECT, 66), Text("fName"), Number("fSize", INT)],
    },
    ClassLayout { name: "TString", version: 2, checksum: 0x0001_7419, members: &[] },
];

/// The bit of a layout that is complete.
const IS_COMPILED: u32 = 1 << 16;

/// Puts the list of all layouts.
pub(crate) fn write_layouts(output: &mut Output) {
    output.object(5, |output| {
        output.bare_object(0);
        output.string("");
        output.i32(CLASSES.len() as i32);
        for class in CLASSES {
            output.pointer("TStreamerInfo", |output| write_class(output, class));
            // The option of an entry of the list.
            output.u8(0);
        }
    });
}

fn write_class(output: &mut Output, class: &ClassLayout) {
    output.object(9, |output| {
        output.named(class.name, "", IS_COMPILED);
        output.u32(class.checksum);
        output.i32(class.version);
        output.pointer("TObjArray", |output| {
            output.object(3, |output| {
                output.bare_object(0);
                output.string("");
                output.i32(class.members.len() as i32);
                output.i32(0);
                class.members.iter().for_each(|member| write_member(output, class, member));
            });
        });
    });
}

/// What all members have.
struct Element {
    name: &'static str,
    title: String,
    kind: i32,
    size: i32,
    /// The checksum of a base class.
    checksum: u32,
    type_name: &'static str,
}

impl Element {
    fn of(member: &Member) -> Self {
        let new = |name, kind, size, type_name| Self { name, title: String::new(), kind, size, checksum: 0, type_name };
        match *member {
            Base(name, _, checksum, kind) => Self { checksum, ..new(name, kind, 0, "BASE") },
            Number(name, NumberType(type_name, kind, size)) => new(name, kind, size, type_name),
            Text(name) => new(name, 65, 24, "TString"),
            Object(name, class, size) => new(name, 61, size, class),
            Array(name) => new(name, 62, 24, "TArrayD"),
            Pointer(name, class, "") => new(name, 64, 8, class),
            Pointer(name, class, title) => Self { title: title.to_owned(), ..new(name, 63, 8, class) },
            Doubles(name, counter) => Self { title: format!("[{counter}]"), ..new(name, 48, 8, "double*") },
        }
    }

    fn write(&self, output: &mut Output) {
        output.object(4, |output| {
            output.named(self.name, &self.title, 0);
            output.i32(self.kind);
            output.i32(self.size);
            // Neither its length nor its number of dimensions.
            output.i32(0);
            output.i32(0);
            output.i32(0);
            output.u32(self.checksum);
            (0..3).for_each(|_| output.i32(0));
            output.string(self.type_name);
        });
    }
}

fn write_member(output: &mut Output, class: &ClassLayout, member: &Member) {
    let (kind, version) = match member {
        Base(..) => ("TStreamerBase", 3),
        Number(..) => ("TStreamerBasicType", 2),
        Text(..) => ("TStreamerString", 2),
        Object(..) => ("TStreamerObject", 2),
        Array(..) => ("TStreamerObjectAny", 2),
        Pointer(..) => ("TStreamerObjectPointer", 2),
        Doubles(..) => ("TStreamerBasicPointer", 2),
    };
    output.pointer(kind, |output| {
        output.object(version, |output| {
            Element::of(member).write(output);
            match *member {
                Base(_, version, ..) => output.i32(version),
                Doubles(_, counter) => {
                    output.i32(class.version);
                    output.string(counter);
                    output.string(class.name);
                }
                _ => {}
            }
        });
    });
}
