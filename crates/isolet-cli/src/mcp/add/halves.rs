//! Halves of surrogate pairs, such as `\ud83d`, which JavaScript writes into JSON and reads from
//! it, and the parser does not. While a text is edited, private characters stand in their places.

/// The first hex digits of the private characters that may stand for halves: `\ue…` to `\ue7ff`, or
/// `\uf…` to `\uf7ff`.
const PRIVATE: [u8; 2] = [b'e', b'f'];

/// The range of private characters that replace halves in a text; `None` if it has no half.
#[derive(Clone, Copy)]
pub(super) struct Halves(Option<u8>);

impl Halves {
    /// Replaces the halves of a text. `Err` if it has all private characters already.
    pub(super) fn replaced(text: &str) -> Result<(Self, String), String> {
        let mut bytes = text.as_bytes().to_vec();
        let halves = lone(&bytes);
        if halves.is_empty() {
            return Ok((Self(None), text.to_owned()));
        }
        let used = |first: u8| escapes(&bytes).any(|(_, digits)| is_private(digits, first));
        let Some(first) = PRIVATE.into_iter().find(|first| !used(*first)) else {
            return Err(
                "it has halves of surrogate pairs, such as `\\ud83d`, which isolet cannot keep"
                    .to_owned(),
            );
        };
        for at in halves {
            // `d8` to `df` become `e0` to `e7`, in the case that they have.
            let is_upper = bytes[at].is_ascii_uppercase();
            bytes[at] = if is_upper { first.to_ascii_uppercase() } else { first };
            bytes[at + 1] = digit(bytes[at + 1]).map_or(b'0', |digit| b'0' + (digit & 7));
        }
        Ok((Self(Some(first)), String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Puts the halves back.
    pub(super) fn restored(self, text: &str) -> String {
        let Some(first) = self.0 else { return text.to_owned() };
        let mut bytes = text.as_bytes().to_vec();
        let places: Vec<usize> = escapes(&bytes)
            .filter(|(_, digits)| is_private(digits, first))
            .map(|(at, _)| at)
            .collect();
        for at in places {
            let is_upper = bytes[at].is_ascii_uppercase();
            bytes[at] = if is_upper { b'D' } else { b'd' };
            let high = digit(bytes[at + 1]).unwrap_or_default() | 8;
            let letter = if high < 10 { b'0' + high } else { b'a' + high - 10 };
            bytes[at + 1] = if is_upper { letter.to_ascii_uppercase() } else { letter };
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Returns the places of the digits of escapes that are halves without the other.
fn lone(text: &[u8]) -> Vec<usize> {
    let mut lone = Vec::new();
    let mut high: Option<usize> = None;
    for (at, digits) in escapes(text) {
        let unit =
            digits.iter().fold(0, |value, byte| value << 4 | u32::from(digit(*byte).unwrap_or(0)));
        let follows = high.take_if(|before| *before + 6 == at).is_some();
        // A high half that nothing followed is alone.
        lone.extend(high.take());
        match unit {
            0xd800..=0xdbff => {
                if follows {
                    lone.push(at - 6);
                }
                high = Some(at);
            }
            0xdc00..=0xdfff if follows => {}
            0xdc00..=0xdfff => lone.push(at),
            _ if follows => lone.push(at - 6),
            _ => {}
        }
    }
    lone.extend(high);
    lone
}

/// Returns the escapes of units of UTF-16: the places of their four digits, and these.
fn escapes(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            at += text.get(at..)?.iter().position(|byte| *byte == b'\\')? + 2;
            let digits = text.get(at..at + 4);
            if text.get(at - 1) == Some(&b'u')
                && let Some(digits) =
                    digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            {
                at += 4;
                return Some((at - 4, digits));
            }
        }
    })
}

fn is_private(digits: &[u8], first: u8) -> bool {
    digits[0].eq_ignore_ascii_case(&first) && matches!(digits[1], b'0'..=b'7')
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_replaced_and_come_back_as_they_were() {
        for (text, replaced) in [
            (r#"{"a": "\ud83d"}"#, r#"{"a": "\ue03d"}"#),
            (r#""\uDBFF \udc00x""#, r#""\uE3FF \ue400x""#),
            (r#""\ud83d\ud83d\ude00\ud83d\u0041""#, r#""\ue03d\ud83d\ude00\ue03d\u0041""#),
            (r#""\ud83d \ue000""#, r#""\uf03d \ue000""#),
            (r#""\\ud83d \ud83d\ude00""#, r#""\\ud83d \ud83d\ude00""#),
        ] {
            let (halves, given) = Halves::replaced(text).unwrap();
            assert_eq!(given, replaced, "{text}");
            assert_eq!(halves.restored(&given), text);
        }
        assert!(Halves::replaced(r#""\ud83d \ue000 \uf000""#).is_err());
    }
}
