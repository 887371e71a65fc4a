//! Decompresses bodies, in steps that bound the output of a decompression bomb.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use hyper::body::{Buf, Bytes};
use hyper::header::{self, HeaderMap};

/// The maximum number of compressed bytes in a step. DEFLATE expands data at most 1032 times.
const STEP: usize = 1024;

/// The decompressor of one body.
pub(crate) enum Decoder {
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    /// `deflate`: zlib according to the standard, raw DEFLATE from some servers.
    Deflate(Deflate),
}

impl Decoder {
    /// Makes the decoder for a response's encoding; `None` if the response has none or an unknown
    /// one.
    pub(crate) fn new(headers: &HeaderMap) -> Option<Self> {
        let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
        let coding = codings.next()?.to_str().ok()?.trim().to_ascii_lowercase();
        match coding.as_str() {
            _ if codings.next().is_some() => None,
            "gzip" | "x-gzip" => Some(Self::Gzip(Box::new(MultiGzDecoder::new(Vec::new())))),
            "deflate" => Some(Self::Deflate(Deflate::default())),
            _ => None,
        }
    }

    /// Decompresses part of `raw`, at least one byte.
    pub(crate) fn step(&mut self, raw: &mut Bytes) -> io::Result<Bytes> {
        match self {
            Self::Gzip(decoder) => {
                let piece = raw.split_to(raw.len().min(STEP));
                decoder.write_all(&piece)?;
                Ok(std::mem::take(decoder.get_mut()).into())
            }
            Self::Deflate(decoder) => decoder.step(raw),
        }
    }

    /// Ends the body and returns the remaining output. Fails if the compressed data is incomplete.
    pub(crate) fn finish(&mut self) -> io::Result<Bytes> {
        match self {
            Self::Gzip(decoder) => {
                decoder.try_finish()?;
                Ok(std::mem::take(decoder.get_mut()).into())
            }
            Self::Deflate(decoder) if decoder.ended => Ok(Bytes::new()),
            Self::Deflate(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

#[derive(Default)]
pub(crate) struct Deflate {
    inner: Option<Decompress>,
    /// The first byte of the body. One byte is not enough to distinguish zlib from raw DEFLATE.
    first: Option<u8>,
    ended: bool,
}

impl Deflate {
    fn step(&mut self, raw: &mut Bytes) -> io::Result<Bytes> {
        if self.ended {
            // Bytes after the end are ignored.
            raw.clear();
            return Ok(Bytes::new());
        }
        let mut out = Vec::new();
        if let Some(inner) = &mut self.inner {
            let taken = inflate(inner, raw, &mut out, &mut self.ended)?;
            raw.advance(taken);
        } else if let Some(first) = self.first {
            let second = raw.first().copied().unwrap_or_default();
            let zlib =
                first & 0x0f == 8 && (u16::from(first) << 8 | u16::from(second)).is_multiple_of(31);
            let inner = self.inner.insert(Decompress::new(zlib));
            inflate(inner, &[first], &mut out, &mut self.ended)?;
        } else {
            self.first = raw.first().copied();
            raw.advance(1);
        }
        Ok(out.into())
    }
}

/// Decompresses at most [`STEP`] bytes. Returns how many were taken.
fn inflate(
    inner: &mut Decompress,
    raw: &[u8],
    out: &mut Vec<u8>,
    ended: &mut bool,
) -> io::Result<usize> {
    const ROOM: usize = 64 << 10;
    let raw = raw.get(..STEP).unwrap_or(raw);
    let (before, mut taken) = (inner.total_in(), 0);
    loop {
        out.reserve(ROOM);
        let rest = raw.get(taken..).unwrap_or_default();
        let status = inner.decompress_vec(rest, out, FlushDecompress::None)?;
        taken = usize::try_from(inner.total_in() - before).unwrap_or(raw.len());
        *ended = status == Status::StreamEnd;
        // If room is left in `out`, there is no more output.
        if *ended || out.len() < out.capacity() {
            return Ok(taken);
        }
    }
}
