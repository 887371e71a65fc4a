//! Translates the parts of an exception besides its message, for the guest's half and from it.

use isolet::Value;

use super::fields::Fields;
use super::messages::events::{Cause, Details, ExcData, JsonErrorData, UnicodeErrorData};

/// Returns the parts of the client's exception; `None` for a kind that is unknown here.
pub(super) fn to_guest(data: ExcData) -> Value {
    match data.kind {
        Some(Details::Unicode(UnicodeErrorData { encoding, object, start, end, reason })) => {
            let object = match object {
                Some(Cause::Bytes(bytes)) => Value::Bytes(bytes),
                Some(Cause::Str(text)) => text.into(),
                None => return Value::None,
            };
            let (start, end) = (number(start), number(end));
            Value::List(vec!["unicode".into(), encoding.into(), object, start, end, reason.into()])
        }
        Some(Details::Json(JsonErrorData { msg, doc, pos, lineno, colno })) => {
            let doc = doc.map_or(Value::None, Value::from);
            let (pos, line, column) = (number(pos), number(lineno), number(colno));
            Value::List(vec!["json".into(), msg.into(), doc, pos, line, column])
        }
        None => Value::None,
    }
}

/// Reads the parts of an exception that the guest reports. Guest code may have changed them.
pub(super) fn from_guest(data: Value) -> Result<Option<ExcData>, String> {
    let fields = match data {
        Value::None => return Ok(None),
        Value::List(fields) => fields,
        _ => return Err("what an exception consists of is no list".to_owned()),
    };
    let mut fields = Fields::new(fields);
    let details = match fields.text()?.as_str() {
        "unicode" => Details::Unicode(UnicodeErrorData {
            encoding: fields.text()?,
            object: Some(match fields.value()? {
                Value::Bytes(bytes) => Cause::Bytes(bytes),
                Value::Str(text) => Cause::Str(text),
                _ => return Err("what failed is neither bytes nor a str".to_owned()),
            }),
            start: fields.int()?,
            end: fields.int()?,
            reason: fields.text()?,
        }),
        "json" => Details::Json(JsonErrorData {
            msg: fields.text()?,
            doc: fields.optional_text()?,
            pos: fields.int()?,
            lineno: fields.int()?,
            colno: fields.int()?,
        }),
        kind => return Err(format!("an exception of the kind {kind:?} is unknown")),
    };
    fields.end()?;
    Ok(Some(ExcData { kind: Some(details) }))
}

fn number(number: u64) -> Value {
    i64::try_from(number).unwrap_or(i64::MAX).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_exception_consists_of_comes_back_as_it_went() {
        let list = |fields: Vec<Value>| Value::List(fields);
        let unicode = |object: Value| {
            list(vec!["unicode".into(), "utf-8".into(), object, 0.into(), 1.into(), "bad".into()])
        };
        let json = ["json".into(), "bad".into(), Value::None, 5.into(), 1.into(), 6.into()];
        for data in [unicode(Value::bytes(*b"\xff")), unicode("\u{fffd}".into()), list(json.into())]
        {
            let read = from_guest(data.clone()).unwrap().unwrap();
            assert_eq!(to_guest(read), data);
        }
        assert_eq!(from_guest(Value::None).unwrap(), None);
        assert!(from_guest(unicode(1.into())).is_err());
        assert!(from_guest(list(vec!["other".into()])).is_err());
    }
}
