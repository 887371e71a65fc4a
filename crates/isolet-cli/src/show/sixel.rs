//! Encodes PNG pictures as sixels: bands of six rows, one colour of a palette at a time.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Cursor;

use color_quant::NeuQuant;
use png::{Decoder, Limits, Transformations};

/// The most bytes that decoding a picture may take, and a decoded picture may have.
const MAX_DECODED_BYTES: usize = 64 << 20;

/// The number of colours that a terminal has for sixels.
const COLORS: usize = 256;

/// The palette is learnt from each tenth pixel.
const SAMPLE_FACTOR: i32 = 10;

/// A row of sixels is one colour's share of a band.
const BAND_ROWS: usize = 6;

/// A picture without transparency.
struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<[u8; 3]>,
}

/// Returns the sequence that draws a PNG picture, or `None` if these bytes are no picture of a size
/// to draw. One wider than `max_width` pixels is shrunk.
pub(crate) fn encode(png: &[u8], max_width: usize) -> Option<String> {
    let picture = decode(png)?.shrunk(max_width);
    let (palette, indices) = in_few_colors(&picture.pixels);
    let mut sixels = format!("\x1bP0;1;0q\"1;1;{};{}", picture.width, picture.height);
    for (at, color) in palette.iter().enumerate() {
        let [red, green, blue] = color.map(|part| (u32::from(part) * 100 + 127) / 255);
        // Writing to a string does not fail.
        let _ = write!(sixels, "#{at};2;{red};{green};{blue}");
    }
    for band in indices.chunks(picture.width * BAND_ROWS) {
        encode_band(band, picture.width, &mut sixels);
    }
    sixels.push_str("\x1b\\");
    Some(sixels)
}

/// Encodes up to six rows, whose pixels are numbers of colours.
fn encode_band(band: &[u8], width: usize, to: &mut String) {
    let mut has_color = [false; COLORS];
    for color in band {
        has_color[usize::from(*color)] = true;
    }
    let colors = (0..=u8::MAX).filter(|color| has_color[usize::from(*color)]);
    for (nth, color) in colors.enumerate() {
        if nth > 0 {
            to.push('$'); // back to the band's first column
        }
        let _ = write!(to, "#{color}");
        let mut run: Option<(u8, usize)> = None;
        for column in 0..width {
            let rows = band.iter().skip(column).step_by(width).enumerate();
            let bits = rows.fold(0, |bits, (row, found)| bits | u8::from(*found == color) << row);
            run = match run {
                Some((before, count)) if before == bits => Some((bits, count + 1)),
                _ => {
                    encode_run(run, to);
                    Some((bits, 1))
                }
            };
        }
        // The end of a row in other colours needs no sixels.
        encode_run(run.filter(|(bits, _)| *bits != 0), to);
    }
    to.push('-');
}

fn encode_run(run: Option<(u8, usize)>, to: &mut String) {
    let Some((bits, count)) = run else { return };
    let sixel = char::from(b'?' + bits);
    if count > 3 {
        let _ = write!(to, "!{count}");
        to.push(sixel);
    } else {
        to.extend(std::iter::repeat_n(sixel, count));
    }
}

/// Returns a palette, and the number in it of each pixel's colour or of the nearest one.
fn in_few_colors(pixels: &[[u8; 3]]) -> (Vec<[u8; 3]>, Vec<u8>) {
    let mut numbers = HashMap::new();
    let mut number = |pixel: &[u8; 3]| {
        let next = numbers.len();
        u8::try_from(*numbers.entry(*pixel).or_insert(next)).ok()
    };
    if let Some(indices) = pixels.iter().map(&mut number).collect::<Option<Vec<u8>>>() {
        let mut palette = vec![[0; 3]; numbers.len()];
        for (color, number) in numbers {
            palette[number] = color;
        }
        return (palette, indices);
    }
    let opaque = |[red, green, blue]: [u8; 3]| [red, green, blue, u8::MAX];
    let all: Vec<u8> = pixels.iter().flat_map(|pixel| opaque(*pixel)).collect();
    let quantizer = NeuQuant::new(SAMPLE_FACTOR, COLORS, &all);
    let palette = quantizer.color_map_rgb().as_chunks().0.to_vec();
    let mut known = HashMap::new();
    let mut nearest = |pixel: [u8; 3]| {
        *known.entry(pixel).or_insert_with(|| byte(quantizer.index_of(&opaque(pixel))))
    };
    let indices = pixels.iter().map(|pixel| nearest(*pixel)).collect();
    (palette, indices)
}

/// Decodes a picture, on white.
fn decode(png: &[u8]) -> Option<Picture> {
    let limits = Limits { bytes: MAX_DECODED_BYTES };
    let mut decoder = Decoder::new_with_limits(Cursor::new(png), limits);
    decoder.set_transformations(Transformations::normalize_to_color8() | Transformations::ALPHA);
    let mut reader = decoder.read_info().ok()?;
    let size = reader.output_buffer_size().filter(|size| *size <= MAX_DECODED_BYTES)?;
    let mut data = vec![0; size];
    let frame = reader.next_frame(&mut data).ok()?;
    let on_white = |parts: &[u8], alpha: u8| -> [u8; 3] {
        let blend = |part: u8| {
            let (part, alpha) = (u32::from(part), u32::from(alpha));
            byte((part * alpha + 255 * (255 - alpha) + 127) / 255)
        };
        [0, 1, 2].map(|nth| blend(parts[nth % parts.len()]))
    };
    let channels = frame.color_type.samples();
    let pixels = data[..frame.buffer_size()].chunks_exact(channels);
    let pixels = pixels.filter_map(|pixel| {
        // With the transformations above, transparency is always there and comes last.
        let (alpha, parts) = pixel.split_last()?;
        Some(on_white(parts, *alpha))
    });
    let (width, height) = (frame.width as usize, frame.height as usize);
    let pixels: Vec<_> = pixels.collect();
    (pixels.len() == width * height).then_some(Picture { width, height, pixels })
}

/// Converts a number that is below 256.
fn byte(number: impl TryInto<u8>) -> u8 {
    number.try_into().unwrap_or(u8::MAX)
}

impl Picture {
    /// Returns the picture at most so wide, by means of squares of pixels.
    fn shrunk(self, max_width: usize) -> Self {
        let factor = self.width.div_ceil(max_width.max(1)).max(1);
        if factor == 1 {
            return self;
        }
        let (width, height) = (self.width.div_ceil(factor), self.height.div_ceil(factor));
        let mut pixels = Vec::with_capacity(width * height);
        for y in 0..height {
            for x in 0..width {
                let rows = y * factor..((y + 1) * factor).min(self.height);
                let columns = x * factor..((x + 1) * factor).min(self.width);
                let square = rows.flat_map(|row| {
                    &self.pixels[row * self.width + columns.start..row * self.width + columns.end]
                });
                let (mut sum, mut count) = ([0u64; 3], 0u64);
                for pixel in square {
                    (0..3).for_each(|part| sum[part] += u64::from(pixel[part]));
                    count += 1;
                }
                pixels.push(sum.map(|sum| byte(sum / count)));
            }
        }
        Self { width, height, pixels }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32, color: png::ColorType, data: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(color);
        encoder.write_header().unwrap().write_image_data(data).unwrap();
        file
    }

    fn encoded(width: u32, height: u32, data: &[u8], max_width: usize) -> String {
        let png = png(width, height, png::ColorType::Rgba, data);
        encode(&png, max_width).unwrap()
    }

    const RED: [u8; 4] = [255, 0, 0, 255];
    const NOTHING: [u8; 4] = [9, 9, 9, 0];

    #[test]
    fn a_band_has_six_rows_and_each_colour_once() {
        let left_red = [RED, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING].concat().repeat(7);
        let expected = "\x1bP0;1;0q\"1;1;6;7#0;2;100;0;0#1;2;100;100;100\
                        #0~$#1?!5~-#0@$#1?!5@-\x1b\\";
        assert_eq!(encoded(6, 7, &left_red, 100), expected);
    }

    #[test]
    fn a_picture_wider_than_the_terminal_is_shrunk() {
        let stripes = [RED, NOTHING].concat().repeat(40);
        let expected = "\x1bP0;1;0q\"1;1;20;1#0;2;100;50;50#0!20@-\x1b\\";
        assert_eq!(encoded(80, 1, &stripes, 20), expected);
    }

    #[test]
    fn a_photograph_gets_a_palette_of_its_own() {
        let colors = (0..64 * 64u32).flat_map(|at| {
            let [low, high, ..] = (at * 16).to_le_bytes();
            [low, high, (at % 64) as u8, 255]
        });
        let sixels = encoded(64, 64, &colors.collect::<Vec<_>>(), 100);
        assert!(sixels.contains("#255;2;") && !sixels.contains("#256"));
    }

    #[test]
    fn what_is_no_picture_is_not_drawn() {
        assert_eq!(encode(b"not a picture", 100), None);
        let mut cut = png(2, 1, png::ColorType::Rgba, &[RED, RED].concat());
        cut.truncate(40);
        assert_eq!(encode(&cut, 100), None);
        // A header that claims 4 GiB of pixels.
        let mut huge = png(1, 1, png::ColorType::Grayscale, &[0]);
        huge[16..24].copy_from_slice(&[0, 0, 0x80, 0, 0, 0, 0x80, 0]);
        assert_eq!(encode(&huge, 100), None);
        let grey = png(2, 1, png::ColorType::Grayscale, &[0, 255]);
        assert!(encode(&grey, 100).unwrap().ends_with("#0@$#1?@-\x1b\\"));
    }
}
