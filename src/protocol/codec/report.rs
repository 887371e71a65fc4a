//! Decodes the guest's report on a command. It is hostile, so the host bounds everything that it
//! keeps. The guest's glue truncates texts too, but a guest may replace the glue.

use super::json_array::json_array;
use crate::data::execution::{PyException, Variable};
use crate::data::limits::Limits;
use crate::data::value::marshal::{DecodeError, Reader};
use crate::protocol::{Report, Status};

/// The maximum size of all variables of a report, in bytes. Those beyond it are omitted.
pub(crate) const LOCALS_BYTES: usize = 16 << 20;

/// The maximum length of a reason, such as why a value cannot cross, in characters.
const REASON_CHARS: usize = 4096;

/// The maximum length of a chain of exceptions and their causes.
pub(crate) const CAUSES: usize = 16;

/// Decodes the guest's report. The error describes what is malformed. A value that takes more than
/// `max_value_bytes` bytes of memory is replaced by a reason.
pub(crate) fn decode(bytes: &[u8], max_value_bytes: u64) -> Result<Report, String> {
    let (mut report, mut ending) = (Report::default(), Ending::default());
    let mut reader = Reader::new(bytes);
    let read = reader.dict(|name, reader| {
        match name {
            "value" => value(reader, max_value_bytes, &mut report)?,
            "value_error" => report.value_error = reader.text()?.map(reason),
            "repr" => report.repr = reader.text()?.map(repr),
            "locals" => locals(reader, &mut report.locals)?,
            "flag" => report.flag = reader.bool()?.unwrap_or_default(),
            _ => ending.take(name, reader)?,
        }
        Ok(())
    });
    let is_dict = read.and_then(|is_dict| {
        // A long value follows, if it is a text.
        if reader.is_before_text() {
            value(&mut reader, max_value_bytes, &mut report)?;
        }
        reader.end().map(|()| is_dict)
    });
    if !is_dict.map_err(|error| error.to_string())? {
        return Err("it is no dict".to_owned());
    }
    report.status = ending.status()?;
    Ok(report)
}

/// Reads the value. Python's dicts have unique keys; of repeated ones the first counts.
fn value(reader: &mut Reader<'_>, limit: u64, report: &mut Report) -> Result<(), DecodeError> {
    if report.value.is_some() {
        return reader.skip().map(drop);
    }
    match reader.value(limit) {
        Ok(value) => report.value = Some(value),
        Err(DecodeError::Memory { needed, limit }) => {
            report.value_error = Some(format!(
                "a value that takes {needed} bytes of the host's memory cannot cross to the host, \
                 the limit is {limit} bytes"
            ));
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// How the command ended, as the guest reports it.
#[derive(Default)]
struct Ending<'a> {
    status: Option<&'a str>,
    code: Option<i32>,
    exception: Option<PyException>,
}

impl<'a> Ending<'a> {
    fn take(&mut self, name: &str, reader: &mut Reader<'a>) -> Result<(), DecodeError> {
        match name {
            "status" => self.status = reader.text()?,
            "code" => self.code = reader.int()?.and_then(|code| i32::try_from(code).ok()),
            "exception" => self.exception = exception(reader, 1)?,
            _ => drop(reader.skip()?),
        }
        Ok(())
    }

    fn status(self) -> Result<Status, String> {
        match (self.status, self.exception, self.code) {
            (Some("completed") | None, ..) => Ok(Status::Completed),
            (Some("raised"), Some(exception), _) => Ok(Status::Raised(exception)),
            (Some("exited"), exception, Some(code)) => Ok(Status::Exited(code, exception)),
            (Some(other), ..) => {
                Err(format!("its status `{}` lacks what belongs to it", name(other)))
            }
        }
    }
}

fn exception(reader: &mut Reader<'_>, nth: usize) -> Result<Option<PyException>, DecodeError> {
    let (mut type_name, mut message, mut traceback) = (None, None, None);
    let (mut args_json, mut cause) = (None, None);
    reader.dict(|part, reader| {
        match part {
            "type" => type_name = reader.text()?.map(name),
            "message" => message = reader.text()?.map(tail),
            "traceback" => traceback = reader.text()?.map(tail),
            "args" => args_json = reader.text()?.and_then(json_array),
            "cause" if nth < CAUSES => cause = exception(reader, nth + 1)?.map(Box::new),
            _ => drop(reader.skip()?),
        }
        Ok(())
    })?;
    let (Some(type_name), Some(message), Some(traceback)) = (type_name, message, traceback) else {
        return Ok(None);
    };
    Ok(Some(PyException { type_name, message, args_json, traceback, cause }))
}

fn locals(reader: &mut Reader<'_>, locals: &mut Vec<Variable>) -> Result<(), DecodeError> {
    locals.clear();
    let mut left = LOCALS_BYTES;
    reader.list(|reader| {
        let found = variable(reader)?;
        let Some(variable) = found else { return Ok(()) };
        let texts = variable.name.len() + variable.type_name.len() + variable.repr.len();
        match left.checked_sub(size_of::<Variable>() + texts) {
            Some(rest) => {
                left = rest;
                locals.push(variable);
            }
            None => left = 0,
        }
        Ok(())
    })?;
    Ok(())
}

/// Reads a variable: its name, type name, length and repr.
fn variable(reader: &mut Reader<'_>) -> Result<Option<Variable>, DecodeError> {
    let (mut texts, mut size, mut nth) = ([None; 3], None, 0);
    reader.list(|reader| {
        match nth {
            0 | 1 => texts[nth] = reader.text()?,
            2 => size = reader.int()?.and_then(|size| u64::try_from(size).ok()),
            3 => texts[2] = reader.text()?,
            _ => drop(reader.skip()?),
        }
        nth += 1;
        Ok(())
    })?;
    let ([Some(own), Some(of_type), Some(repr)], 4) = (texts, nth) else { return Ok(None) };
    let repr = head(repr, Limits::LOCAL_REPR_CHARS as usize);
    Ok(Some(Variable { name: name(own), type_name: name(of_type), size, repr }))
}

/// Returns the name of a class or variable, on one line and truncated.
fn name(text: &str) -> String {
    let mut name = String::new();
    for character in head(text, Limits::NAME_CHARS as usize).chars() {
        if character.is_control() {
            name.extend(character.escape_default());
        } else {
            name.push(character);
        }
    }
    name
}

fn reason(text: &str) -> String {
    head(text, REASON_CHARS)
}

fn repr(text: &str) -> String {
    head(text, Limits::REPR_CHARS as usize)
}

/// Returns the beginning of a text. A truncated text ends in `...`.
fn head(text: &str, chars: usize) -> String {
    const MARK: &str = "...";
    // A text that the guest's glue has truncated already ends in the mark.
    match text.char_indices().nth(chars) {
        Some((end, _)) if &text[end..] != MARK => format!("{}{MARK}", &text[..end]),
        _ => text.to_owned(),
    }
}

/// Returns the end of a text. A truncated text begins with a note, the same that the guest's glue
/// adds.
pub(crate) fn tail(text: &str) -> String {
    const CHARS: usize = Limits::EXCEPTION_CHARS as usize;
    // The maximum length of the note, in characters.
    const NOTE: usize = 64;
    // No text has more characters than bytes.
    if text.len() <= CHARS {
        return text.to_owned();
    }
    let chars = text.chars().count();
    if chars <= CHARS + NOTE {
        return text.to_owned();
    }
    let missing = chars - CHARS;
    let start = text.char_indices().nth(missing).map_or(text.len(), |(start, _)| start);
    format!("[... {missing} characters dropped ...]{}", &text[start..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::value::{Value, marshal};

    fn encoded(fields: impl IntoIterator<Item = (&'static str, Value)>) -> Vec<u8> {
        let mut bytes = Vec::new();
        marshal::encode(&Value::dict(fields), &mut bytes);
        bytes
    }

    fn raised(parts: impl IntoIterator<Item = (&'static str, Value)>) -> PyException {
        let exception = Value::dict(parts);
        let report = encoded([("status", "raised".into()), ("exception", exception)]);
        match decode(&report, 0).unwrap().status {
            Status::Raised(exception) => exception,
            status => panic!("{status:?}"),
        }
    }

    fn texts(type_name: &str, message: &str, args: &str) -> [(&'static str, Value); 4] {
        [
            ("type", type_name.into()),
            ("message", message.into()),
            ("traceback", message.into()),
            ("args", args.into()),
        ]
    }

    #[test]
    fn nonsense_from_the_guest_is_an_error_and_no_panic() {
        assert_eq!(decode(b"N", 0).unwrap_err(), "it is no dict");
        assert_eq!(decode(b"", 0).unwrap_err(), "it ends after 0 bytes, inside a value");
        assert_eq!(decode(b"{0N", 0).unwrap_err(), "it goes on after its end at byte 2");
        let bytes = encoded([("status", "raised".into())]);
        assert_eq!(decode(&bytes, 0).unwrap_err(), "its status `raised` lacks what belongs to it");
    }

    #[test]
    fn a_value_past_the_limit_is_a_reason_with_both_numbers_and_the_rest_is_read() {
        let list = Value::List(vec![Value::None; 1000]);
        let bytes = encoded([("value", list.clone()), ("repr", "all of it".into())]);
        let report = decode(&bytes, 32_100).unwrap();
        assert_eq!((report.value, report.value_error), (Some(list), None));
        let report = decode(&bytes, 31_900).unwrap();
        assert_eq!((report.value, report.repr.as_deref()), (None, Some("all of it")));
        assert_eq!(
            report.value_error.unwrap(),
            "a value that takes 32016 bytes of the host's memory cannot cross to the host, the \
             limit is 31900 bytes"
        );
    }

    #[test]
    fn a_text_after_the_report_is_its_value_and_anything_else_there_is_an_error() {
        let after = |value: &Value| {
            let mut bytes = encoded([("status", "completed".into()), ("repr", "short".into())]);
            marshal::encode(value, &mut bytes);
            bytes
        };
        let text = Value::from("x".repeat(1000));
        let report = decode(&after(&text), 2000).unwrap();
        assert_eq!((report.value.as_ref(), report.repr.as_deref()), (Some(&text), Some("short")));
        let report = decode(&after(&text), 500).unwrap();
        let error = report.value_error.unwrap();
        assert!(report.value.is_none() && error.contains("the limit is 500 bytes"), "{error}");
        let mut twice = after(&text);
        marshal::encode(&text, &mut twice);
        for bytes in [after(&1.into()), after(&Value::List(vec![])), twice] {
            let error = decode(&bytes, 10_000).unwrap_err();
            assert!(error.starts_with("it goes on after its end at byte"), "{error}");
        }
        let cut = after(&text);
        assert!(decode(&cut[..cut.len() - 1], 10_000).unwrap_err().contains("inside a value"));
        let mut both = encoded([("value", 1.into())]);
        marshal::encode(&text, &mut both);
        let report = decode(&both, 10_000);
        assert_eq!(report.unwrap().value, Some(Value::Int(1)), "the first one counts");
    }

    #[test]
    fn texts_of_exceptions_are_cut_on_the_host() {
        let long = "é".repeat(100_000);
        let exception = raised(texts(&long, &long, "[1]"));
        assert_eq!(exception.type_name, format!("{}...", "é".repeat(500)));
        let kept = format!("[... 34464 characters dropped ...]{}", "é".repeat(65_536));
        assert_eq!((&exception.message, &exception.traceback), (&kept, &kept));
        // A text that the guest's glue has truncated is not truncated again.
        let exception = raised(texts("A", &kept, "[1]"));
        assert_eq!(exception.message, kept);
    }

    #[test]
    fn a_name_is_on_one_line() {
        let exception = raised(texts("A\n\u{1b}[2J\u{9b}B", "", ""));
        assert_eq!(exception.type_name, "A\\n\\u{1b}[2J\\u{9b}B");
    }

    #[test]
    fn causes_are_followed_for_a_while() {
        let cause = (0..100).fold(Value::None, |cause, _| {
            let mut parts = texts("A", "", "[]").to_vec();
            parts.push(("cause", cause));
            Value::dict(parts)
        });
        let mut parts = texts("A", "", "[]").to_vec();
        parts.push(("cause", cause));
        let bytes = encoded([("status", "raised".into()), ("exception", Value::dict(parts))]);
        let Ok(Report { status: Status::Raised(exception), .. }) = decode(&bytes, 0) else {
            panic!("it is no exception");
        };
        let causes = std::iter::successors(Some(&exception), |one| one.cause.as_deref());
        assert_eq!(causes.count(), CAUSES);
    }

    #[test]
    fn args_are_a_json_array_on_one_line_or_nothing() {
        let args = |json: &str| raised(texts("A", "", json)).args_json;
        let forged = "[\n{\"status\":\"completed\",\"status\":\"\\ud800\"}\r\n]";
        let expected = "[{\"status\": \"\\ufffd\\ufffd\\ufffd\"}]";
        assert_eq!(args(forged).as_deref(), Some(expected));
        assert_eq!(args("[1e999999]"), None);
    }

    #[test]
    fn variables_are_cut_and_counted_on_the_host() {
        let variable = |name: &str, repr: &str| {
            Value::List(vec![name.into(), "int".into(), Value::Int(3), repr.into()])
        };
        let repr = "r".repeat(1000);
        let odd = Value::List(vec!["a".into()]);
        let few = [variable(&repr, &repr), odd, variable("b\n", "1")];
        let report = decode(&encoded([("locals", Value::List(few.to_vec()))]), 0).unwrap();
        let cut = format!("{}...", "r".repeat(500));
        let expected = |name: &str, repr: &str| Variable {
            name: name.to_owned(),
            type_name: "int".to_owned(),
            size: Some(3),
            repr: repr.to_owned(),
        };
        assert_eq!(report.locals, [expected(&cut, &cut), expected("b\\n", "1")]);
        let many = Value::List(vec![variable("a", &repr); 100_000]);
        let report = decode(&encoded([("locals", many)]), 0).unwrap();
        let texts: usize = report.locals.iter().map(|one| one.repr.len()).sum();
        assert!((1 << 20..LOCALS_BYTES).contains(&texts), "{texts}");
    }
}
