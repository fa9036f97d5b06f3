//! Puts big-endian numbers and ROOT's strings and headers into bytes: what [`crate::cursor`] takes
//! from them.

/// The flag of a four-byte number that is a count of bytes.
const BYTE_COUNT: u32 = 0x4000_0000;

/// The longest text whose length is one byte.
const SHORT_TEXT: usize = 254;

/// Bytes that are being written.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) bytes: Vec<u8>,
}

macro_rules! number {
    ($($name:ident: $type:ty),*) => {$(
        pub(crate) fn $name(&mut self, number: $type) {
            self.bytes.extend_from_slice(&number.to_be_bytes());
        }
    )*};
}

impl Output {
    number!(u8: u8, i16: i16, u16: u16, i32: i32, u32: u32, f32: f32, f64: f64);

    /// Puts a `TString`.
    pub(crate) fn string(&mut self, text: &str) {
        if text.len() <= SHORT_TEXT {
            self.u8(text.len() as u8);
        } else {
            self.u8(u8::MAX);
            self.i32(text.len() as i32);
        }
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Puts a `TArrayD`.
    pub(crate) fn doubles(&mut self, numbers: impl ExactSizeIterator<Item = f64>) {
        self.i32(numbers.len() as i32);
        numbers.for_each(|number| self.f64(number));
    }

    /// Puts an object or a base class: its length, the version of its class, and what `write` puts.
    pub(crate) fn object(&mut self, version: u16, write: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.u32(0);
        self.u16(version);
        write(self);
        self.set_length(start);
    }

    /// Puts an object of the class `class` as a pointer leads to it.
    pub(crate) fn pointer(&mut self, class: &str, write: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.u32(0);
        // The name of the class follows, and no number that refers to an earlier one.
        self.u32(u32::MAX);
        self.bytes.extend_from_slice(class.as_bytes());
        self.u8(0);
        write(self);
        self.set_length(start);
    }

    /// Puts the number of bytes from `start`, without those of the number itself, at `start`.
    fn set_length(&mut self, start: usize) {
        let length = (self.bytes.len() - start - 4) as u32;
        self.bytes[start..start + 4].copy_from_slice(&(length | BYTE_COUNT).to_be_bytes());
    }

    /// Puts a base `TObject`, whose length is not written, with these bits.
    pub(crate) fn bare_object(&mut self, bits: u32) {
        self.u16(1);
        self.u32(0);
        self.u32(bits);
    }

    /// Puts a base `TNamed`.
    pub(crate) fn named(&mut self, name: &str, title: &str, bits: u32) {
        self.object(1, |output| {
            output.bare_object(bits);
            output.string(name);
            output.string(title);
        });
    }

    /// Puts a `TList` without elements.
    pub(crate) fn empty_list(&mut self) {
        self.object(5, |output| {
            output.bare_object(0);
            output.string("");
            output.i32(0);
        });
    }
}
