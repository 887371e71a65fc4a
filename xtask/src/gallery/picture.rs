//! Pictures in PNG: their size, and whether two resemble each other. None is decoded.

use anyhow::{Context, Result, ensure};

/// The most bytes of a picture on the page.
const MAX_BYTES: usize = 40 * 1024;

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The last chunk: its length, its type and its checksum.
const END: &[u8] = b"\0\0\0\0IEND\xaeB`\x82";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Picture {
    /// Width and height.
    size: (u32, u32),
    bytes: usize,
}

impl Picture {
    /// Requires a complete picture that is small enough for the page.
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        let is_whole = bytes.starts_with(SIGNATURE) && bytes.ends_with(END);
        ensure!(is_whole, "the picture is no complete PNG");
        let number = |at: usize| -> Result<u32> {
            let four = bytes.get(at..at + 4).context("the picture has no header")?;
            Ok(u32::from_be_bytes(four.try_into()?))
        };
        // After the length and the type of the first chunk.
        let start = SIGNATURE.len() + 8;
        let picture = Self { size: (number(start)?, number(start + 4)?), bytes: bytes.len() };
        let bytes = picture.bytes;
        ensure!(bytes <= MAX_BYTES, "the picture has {bytes} bytes (at most {MAX_BYTES})");
        Ok(picture)
    }

    /// Requires the size of another picture, and about as much in it: a blank one has much less.
    pub(super) fn resembles(self, other: Self) -> Result<()> {
        let ((width, height), (w, h)) = (self.size, other.size);
        ensure!(self.size == other.size, "the picture is {width} x {height}, not {w} x {h}");
        let (bytes, expected) = (self.bytes, other.bytes);
        let is_near = bytes.abs_diff(expected) <= expected / 5;
        ensure!(is_near, "the picture has {bytes} bytes instead of about {expected}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32, rest: usize) -> Vec<u8> {
        let (width, height) = (width.to_be_bytes(), height.to_be_bytes());
        [SIGNATURE, b"\0\0\0\x0dIHDR", &width, &height, &vec![0; rest], END].concat()
    }

    fn read(bytes: &[u8]) -> Result<Picture> {
        Picture::read(bytes)
    }

    #[test]
    fn picture_resembles_another_of_its_size() {
        let picture = read(&png(700, 300, 10_000)).unwrap();
        assert_eq!(picture.size, (700, 300));
        picture.resembles(read(&png(700, 300, 11_000)).unwrap()).unwrap();
        for (other, reason) in [
            (png(700, 301, 10_000), "is 700 x 300, not 700 x 301"),
            (png(700, 300, 20_000), "instead of about"),
        ] {
            let error = picture.resembles(read(&other).unwrap()).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn other_files_are_no_pictures() {
        let whole = png(1, 1, 10);
        for (bytes, reason) in [
            (b"GIF89a".to_vec(), "no complete PNG"),
            (whole[..whole.len() - 1].to_vec(), "no complete PNG"),
            (png(1, 1, MAX_BYTES), "at most"),
        ] {
            let error = read(&bytes).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
