//! Takes big-endian numbers and ROOT's strings and headers from bytes; every length is checked.

/// The bytes ended before the value did, or a length contradicts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfBytes;

/// The flag of a four-byte number that is a count of bytes.
const BYTE_COUNT: u32 = 0x4000_0000;

/// The flag of an object that other objects refer to: two more bytes follow.
const IS_REFERENCED: u32 = 1 << 4;

/// A place in bytes.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
}

/// The header of an object or of a base class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectHeader {
    /// The version of the class.
    pub(crate) version: u16,
    /// The position of the first byte after the object; `None` where no length is written.
    pub(crate) end: Option<usize>,
}

macro_rules! number {
    ($($name:ident: $type:ty),*) => {$(
        pub(crate) fn $name(&mut self) -> Result<$type, OutOfBytes> {
            self.array().map(<$type>::from_be_bytes)
        }
    )*};
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    number!(i8: i8, u8: u8, i16: i16, u16: u16, i32: i32, u32: u32, i64: i64, f64: f64);

    pub(crate) fn position(&self) -> usize {
        self.position
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], OutOfBytes> {
        let end = self.position.checked_add(length).ok_or(OutOfBytes)?;
        let taken = self.bytes.get(self.position..end).ok_or(OutOfBytes)?;
        self.position = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], OutOfBytes> {
        self.take(N)?.try_into().map_err(|_| OutOfBytes)
    }

    /// Moves to `position`, which may only be ahead.
    pub(crate) fn skip_to(&mut self, position: usize) -> Result<(), OutOfBytes> {
        let ahead = position.checked_sub(self.position).ok_or(OutOfBytes)?;
        self.take(ahead).map(|_| ())
    }

    /// Takes an offset in the file: eight bytes if `is_long`, otherwise four.
    pub(crate) fn offset(&mut self, is_long: bool) -> Result<u64, OutOfBytes> {
        if is_long { self.i64().and_then(|offset| offset.try_into().map_err(|_| OutOfBytes)) } else { self.count() }
    }

    /// Takes four bytes that are a count, and refuses a negative one.
    pub(crate) fn count(&mut self) -> Result<u64, OutOfBytes> {
        self.i32().and_then(|count| count.try_into().map_err(|_| OutOfBytes))
    }

    /// Takes a `TString`. Bytes that are not UTF-8 become U+FFFD.
    pub(crate) fn string(&mut self) -> Result<String, OutOfBytes> {
        let length = match self.u8()? {
            u8::MAX => self.length()?,
            short => usize::from(short),
        };
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    fn length(&mut self) -> Result<usize, OutOfBytes> {
        self.i32().and_then(|length| length.try_into().map_err(|_| OutOfBytes))
    }

    /// Takes the numbers of a `TArray`: their count, and `width` bytes each.
    pub(crate) fn array_bytes(&mut self, width: usize) -> Result<&'a [u8], OutOfBytes> {
        let length = self.length()?.checked_mul(width).ok_or(OutOfBytes)?;
        self.take(length)
    }

    /// Takes a `TArrayD`.
    pub(crate) fn doubles(&mut self) -> Result<Vec<f64>, OutOfBytes> {
        let bytes = self.array_bytes(8)?;
        Ok(bytes.chunks_exact(8).map(|eight| f64::from_be_bytes(eight.try_into().unwrap_or_default())).collect())
    }

    /// Takes the header of an object or of a base class.
    pub(crate) fn header(&mut self) -> Result<ObjectHeader, OutOfBytes> {
        let first = self.clone().u32();
        if let Ok(counted) = first
            && counted & BYTE_COUNT != 0
        {
            self.take(4)?;
            let length = usize::try_from(counted & !BYTE_COUNT).map_err(|_| OutOfBytes)?;
            let end = self.position.checked_add(length).filter(|&end| end <= self.bytes.len()).ok_or(OutOfBytes)?;
            return Ok(ObjectHeader { version: self.u16()?, end: Some(end) });
        }
        Ok(ObjectHeader { version: self.u16()?, end: None })
    }

    /// Skips a base class whose members do not matter, and returns its version.
    pub(crate) fn skip_base(&mut self) -> Result<u16, OutOfBytes> {
        let header = self.header()?;
        self.skip_to(header.end.ok_or(OutOfBytes)?)?;
        Ok(header.version)
    }

    /// Skips a pointer to an object, and the object if it is written here.
    pub(crate) fn skip_pointer(&mut self) -> Result<(), OutOfBytes> {
        let tag = self.u32()?;
        if tag & BYTE_COUNT != 0 && tag != u32::MAX {
            self.take(usize::try_from(tag & !BYTE_COUNT).map_err(|_| OutOfBytes)?)?;
        }
        Ok(())
    }

    /// Takes a base `TNamed`: the name and the title.
    pub(crate) fn named(&mut self) -> Result<[String; 2], OutOfBytes> {
        let header = self.header()?;
        self.skip_object()?;
        let named = [self.string()?, self.string()?];
        if let Some(end) = header.end {
            self.skip_to(end)?;
        }
        Ok(named)
    }

    /// Skips a base `TObject`.
    fn skip_object(&mut self) -> Result<(), OutOfBytes> {
        self.header()?;
        self.u32()?;
        let bits = self.u32()?;
        if bits & IS_REFERENCED != 0 {
            self.u16()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_taken_beyond_the_end() {
        let mut cursor = Cursor::new(&[0, 0, 0, 1, 7]);
        assert_eq!(cursor.clone().take(6), Err(OutOfBytes));
        assert_eq!(cursor.i32(), Ok(1));
        assert_eq!(cursor.u16(), Err(OutOfBytes));
        assert_eq!(cursor.skip_to(3), Err(OutOfBytes));
        assert_eq!(Cursor::new(&[255, 0x7f, 255, 255, 255, 1]).string(), Err(OutOfBytes));
        assert_eq!(Cursor::new(&[0xff; 4]).array_bytes(8), Err(OutOfBytes));
    }

    #[test]
    fn a_length_beyond_the_end_is_refused_before_anything_is_read() {
        assert_eq!(Cursor::new(&[0x40, 0, 0, 9, 0, 3]).header(), Err(OutOfBytes));
        let header = Cursor::new(&[0x40, 0, 0, 3, 0, 3, 1]).header();
        assert_eq!(header, Ok(ObjectHeader { version: 3, end: Some(7) }));
        assert_eq!(Cursor::new(&[0, 3]).header(), Ok(ObjectHeader { version: 3, end: None }));
    }
}
