//! Unpacks Zstandard: with the library of the format, and in Rust where there is no C.

use std::io::{self, Read};

/// Returns a reader of what the Zstandard frames in `bytes` unpack to, one after the other.
///
/// # Errors
///
/// A decoder that cannot be made; what is wrong with the frames is an error of the reader.
#[cfg(not(target_family = "wasm"))]
pub fn zstandard_reader(bytes: &[u8]) -> io::Result<impl Read> {
    zstd::Decoder::with_buffer(bytes)
}

/// Returns a reader of what the Zstandard frames in `bytes` unpack to, one after the other.
///
/// # Errors
///
/// None; what is wrong with the frames is an error of the reader.
#[cfg(target_family = "wasm")]
pub fn zstandard_reader(bytes: &[u8]) -> io::Result<impl Read> {
    Ok(in_rust::FrameReader::new(bytes))
}

#[cfg(any(target_family = "wasm", test))]
mod in_rust {
    use std::io::{self, Read};

    use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
    use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

    /// Bytes that are decoded before they are read.
    const AHEAD: usize = 1 << 20;

    /// Reads frames one after the other, and compares the checksum of each.
    pub(super) struct FrameReader<'a> {
        rest: &'a [u8],
        decoder: FrameDecoder,
        is_in_frame: bool,
    }

    impl<'a> FrameReader<'a> {
        pub(super) fn new(bytes: &'a [u8]) -> Self {
            Self { rest: bytes, decoder: FrameDecoder::new(), is_in_frame: false }
        }

        /// Begins the next frame, behind those that are to be skipped; returns `false` at the end.
        fn begin_frame(&mut self) -> io::Result<bool> {
            while !self.rest.is_empty() {
                match self.decoder.init(&mut self.rest) {
                    Ok(()) => return Ok(true),
                    Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                        length, ..
                    })) => {
                        self.rest = self.rest.get(length as usize..).ok_or(io::ErrorKind::UnexpectedEof)?;
                    }
                    Err(_) => return Err(invalid("not a Zstandard frame, or an incomplete one")),
                }
            }
            Ok(false)
        }

        fn require_checksum(&self) -> io::Result<()> {
            let written = self.decoder.get_checksum_from_data();
            if written.is_some() && written != self.decoder.get_calculated_checksum() {
                return Err(invalid("the checksum does not match"));
            }
            Ok(())
        }
    }

    impl Read for FrameReader<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            loop {
                if !self.is_in_frame && !self.begin_frame()? {
                    return Ok(0);
                }
                self.is_in_frame = true;
                let strategy = BlockDecodingStrategy::UptoBytes(AHEAD);
                if !self.decoder.is_finished() && self.decoder.can_collect() < buffer.len() {
                    self.decoder
                        .decode_blocks(&mut self.rest, strategy)
                        .map_err(|_| invalid("incomplete or damaged frame"))?;
                }
                let n_read = self.decoder.read(buffer)?;
                if n_read > 0 || buffer.is_empty() {
                    return Ok(n_read);
                }
                if self.decoder.is_finished() {
                    self.require_checksum()?;
                    self.is_in_frame = false;
                }
            }
        }
    }

    /// Returns an error with this message: those of the decoder are for its developers.
    fn invalid(message: &'static str) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(bytes: &[u8]) -> [Option<Vec<u8>>; 2] {
        let read = |mut reader: Box<dyn Read + '_>| {
            let mut unpacked = Vec::new();
            reader.read_to_end(&mut unpacked).ok().map(|_| unpacked)
        };
        [read(Box::new(zstandard_reader(bytes).expect("a decoder"))), read(Box::new(in_rust::FrameReader::new(bytes)))]
    }

    #[test]
    fn both_decoders_read_the_same() {
        let text: Vec<u8> = (0..3_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 28) as u8).collect();
        for length in [0, 1, 1000, text.len()] {
            for level in [1, 3, 19] {
                let frame = zstd::bulk::compress(&text[..length], level).expect("compressible");
                assert_eq!(both(&frame), [Some(text[..length].to_vec()), Some(text[..length].to_vec())]);
            }
        }
    }

    #[test]
    fn frames_follow_each_other_and_some_are_skipped() {
        let frame = |text: &[u8]| zstd::bulk::compress(text, 3).expect("compressible");
        let skipped = [&0x184D_2A50_u32.to_le_bytes()[..], &3_u32.to_le_bytes(), b"abc"].concat();
        let bytes = [frame(b"one "), skipped, frame(b"two")].concat();
        assert_eq!(both(&bytes), [Some(b"one two".to_vec()), Some(b"one two".to_vec())]);
    }

    #[test]
    fn damaged_frames_are_errors() {
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).expect("an encoder");
        encoder.include_checksum(true).expect("a checksum");
        io::Write::write_all(&mut encoder, &b"0123456789".repeat(100)).expect("written");
        let frame = encoder.finish().expect("a frame");
        for length in 1..frame.len() {
            assert_eq!(both(&frame[..length]), [None, None], "{length} of {} bytes", frame.len());
        }
        let mut wrong = frame.clone();
        *wrong.last_mut().expect("a checksum") ^= 1;
        assert_eq!(both(&wrong), [None, None]);
        assert_eq!(both(b"no frame"), [None, None]);
    }
}
