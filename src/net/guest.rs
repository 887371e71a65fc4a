//! Converts requests and responses from and to the form that the guest's glue uses.

use super::head::ResponseHead;
use super::request::{Body, Redirect, Request};
use crate::data::shown::shown;
use crate::data::value::{Value, marshal};

/// Memory for the decoded tree of a request, in addition to its texts and body.
const REQUEST_BYTES: u64 = 4 << 20;

/// The maximum length of `fetch`'s headers as JSON: many times what a request may have.
const HEADERS_JSON_BYTES: usize = 1 << 20;

/// Decodes an HTTP request from the guest. The error describes what is malformed.
pub(crate) fn decode_request(bytes: &[u8]) -> Result<Request, String> {
    // A body takes as much memory as its encoding, and the rest is small.
    let memory = (bytes.len() as u64).saturating_add(REQUEST_BYTES);
    let value = marshal::decode_within(bytes, memory).map_err(|error| error.to_string())?;
    let field = |name| value.get(name).ok_or_else(|| format!("a request lacks its `{name}`"));
    let text = |name| {
        let text =
            field(name)?.as_str().ok_or_else(|| format!("a request's `{name}` is no str"))?;
        Ok::<_, String>(text.to_owned())
    };
    let header = |pair: &Value| match pair.as_list() {
        Some([Value::Str(name), Value::Bytes(value)]) => Ok((name.clone(), value.clone())),
        _ => Err("a request's header is no pair of str and bytes".to_owned()),
    };
    let headers = field("headers")?.as_list().ok_or("a request's `headers` are no list")?;
    let body = match field("body")? {
        Value::None => Body::None,
        Value::Bytes(bytes) => Body::Bytes(bytes.clone()),
        _ => Body::Streamed,
    };
    Ok(Request {
        method: text("method")?,
        url: text("url")?,
        headers: headers.iter().map(header).collect::<Result<_, _>>()?,
        body,
        redirect: Redirect::Manual,
        decode: false,
        timeout: None,
    })
}

/// Makes a request from the arguments of `fetch`. The headers are pairs of text as JSON, with one
/// character per byte.
pub(crate) fn fetch_request(
    method: &str,
    url: &str,
    headers: &str,
    body: Option<&[u8]>,
    redirect: &str,
) -> Result<Request, String> {
    if headers.len() > HEADERS_JSON_BYTES {
        let needed = headers.len();
        return Err(format!(
            "the headers of a request take {needed} bytes of JSON, the limit is \
             {HEADERS_JSON_BYTES} bytes"
        ));
    }
    let headers: Vec<(String, String)> = serde_json::from_str(headers).map_err(|error| {
        let error = shown(&error.to_string());
        format!("a request's headers are no pairs of text: {error}")
    })?;
    Ok(Request {
        method: method.to_owned(),
        url: url.to_owned(),
        headers: headers.into_iter().map(|(name, value)| (name, latin1(&value))).collect(),
        body: body.map_or(Body::None, |bytes| Body::Bytes(bytes.to_vec())),
        redirect: match redirect {
            "manual" => Redirect::Manual,
            "error" => Redirect::Error,
            _ => Redirect::Follow,
        },
        decode: true,
        timeout: None,
    })
}

/// Returns the head of a response in the guest's form.
pub(crate) fn response_head(head: ResponseHead) -> Value {
    let header =
        |(name, value): (String, Vec<u8>)| Value::List(vec![name.into(), Value::Bytes(value)]);
    let fields = [
        ("status", i64::from(head.status).into()),
        ("reason", head.reason.into()),
        ("url", head.url.into()),
        ("redirected", head.redirected.into()),
        ("headers", Value::List(head.headers.into_iter().map(header).collect())),
    ];
    Value::Dict(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

/// Converts a header's value from JavaScript, where one character is one byte. A character that is
/// no byte becomes one that is refused.
fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|character| u8::try_from(u32::from(character)).unwrap_or(b'\n')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(fields: &[(&str, Value)]) -> Vec<u8> {
        let fields = fields.iter().map(|(name, value)| ((*name).into(), value.clone()));
        let mut bytes = Vec::new();
        marshal::encode(&Value::Dict(fields.collect()), &mut bytes);
        bytes
    }

    #[test]
    fn a_description_that_is_no_request_is_refused_by_the_name_of_what_is_wrong() {
        let mut fields = vec![("headers", Value::List(Vec::new())), ("body", Value::None)];
        let refusal = |fields: &[_]| decode_request(&encoded(fields)).unwrap_err();
        assert_eq!(refusal(&fields), "a request lacks its `method`");
        fields.push(("method", 1_i64.into()));
        assert_eq!(refusal(&fields), "a request's `method` is no str");
        fields[2].1 = "GET".into();
        assert_eq!(refusal(&fields), "a request lacks its `url`");
        fields.push(("url", "https://a.example/".into()));
        fields[0].1 = Value::List(vec![Value::None]);
        assert_eq!(refusal(&fields), "a request's header is no pair of str and bytes");
        assert!(decode_request(b"no value").is_err());
    }

    #[test]
    fn headers_of_fetch_are_pairs_of_latin_1_and_what_is_not_is_refused_later() {
        let headers = |headers| {
            let request = fetch_request("GET", "https://a.example/", headers, None, "follow");
            request.map(|request| request.headers)
        };
        let pairs = vec![("a".to_owned(), b"\xe9".to_vec()), ("b".to_owned(), b"\n".to_vec())];
        assert_eq!(headers(r#"[["a", "é"], ["b", "€"]]"#), Ok(pairs));
        for wrong in ["", "{}", r#"[["a"]]"#, r#"[["a", 1]]"#] {
            assert!(headers(wrong).is_err(), "{wrong}");
        }
    }
}
