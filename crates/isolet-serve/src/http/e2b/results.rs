//! Displays, values and exceptions in E2B's form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use isolet::{MimeData, Value};
use serde_json::{Map, Value as AnyJson, json};

use crate::http::body::count_values;
use crate::http::exits::Shown;
use isolet_service::core::{Display, Execution};

/// The formats of displays, and the fields of results.
const FIELDS: [(&str, &str); 13] = [
    ("text/plain", "text"),
    ("text/html", "html"),
    ("text/markdown", "markdown"),
    ("image/svg+xml", "svg"),
    ("image/png", "png"),
    ("image/jpeg", "jpeg"),
    ("application/pdf", "pdf"),
    ("text/latex", "latex"),
    ("application/json", "json"),
    ("application/javascript", "javascript"),
    ("e2b/data", "data"),
    ("application/vnd.isolet.table.v1+json", "data"),
    ("e2b/chart", "chart"),
];

/// The format of chart data, which is close to E2B's.
const CHART: &str = "application/vnd.isolet.chart.v1+json";

/// The fields that are objects, not texts.
const OBJECTS: [&str; 3] = ["json", "data", "chart"];

/// A display as a result.
pub(super) fn of_display(display: &Display) -> AnyJson {
    result(display, false, None)
}

/// Returns the value of a cell as a result.
pub(super) fn main(execution: &Execution) -> Option<AnyJson> {
    let repr = execution.repr.as_deref();
    if let Some(display) = execution.displays.iter().find(|display| display.is_result) {
        return Some(result(display, true, repr));
    }
    // Text of a string: without quotes.
    let is_quoted = repr.is_some_and(|repr| repr.starts_with(['\'', '"']));
    let own = execution.value().and_then(Value::as_str).filter(|_| is_quoted);
    execution
        .has_value()
        .then(|| json!({"type": "result", "text": own.or(repr), "is_main_result": true}))
}

fn result(display: &Display, is_main: bool, repr: Option<&str>) -> AnyJson {
    let mut fields = Map::new();
    let mut extra = Map::new();
    fields.insert("type".to_owned(), "result".into());
    fields.insert("is_main_result".to_owned(), is_main.into());
    for (format, data) in display.formats() {
        let text = match data {
            MimeData::Bytes(bytes) => STANDARD.encode(bytes),
            data => data.as_str().unwrap_or_default().to_owned(),
        };
        let field = FIELDS.iter().find(|(its, _)| *its == format).map(|(_, field)| *field);
        match field {
            Some(field) if OBJECTS.contains(&field) => {
                if count_values("the display", text.as_bytes()).is_ok()
                    && let Ok(object) = serde_json::from_str(&text)
                {
                    fields.insert(field.to_owned(), object);
                }
            }
            Some(field) => {
                fields.insert(field.to_owned(), text.into());
            }
            None => {
                if format == CHART
                    && count_values("the chart", text.as_bytes()).is_ok()
                    && let Ok(chart) = serde_json::from_str(&text)
                {
                    fields.insert("chart".to_owned(), as_e2b_has_it(chart));
                }
                extra.insert(format.to_owned(), text.into());
            }
        }
    }
    if let Some(repr) = repr {
        fields.insert("text".to_owned(), repr.into());
    } else if let Some(AnyJson::String(text)) = fields.get_mut("text")
        && let Some(plain) = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''))
    {
        // A string is shown without quotes.
        *text = plain.to_owned();
    }
    if !extra.is_empty() {
        fields.insert("extra".to_owned(), extra.into());
    }
    fields.into()
}

/// Converts a chart to E2B's form: adds the units, which labels contain in brackets, names unnamed
/// elements, and swaps the axis labels of horizontal bar charts.
fn as_e2b_has_it(mut chart: AnyJson) -> AnyJson {
    let Some(fields) = chart.as_object_mut() else { return chart };
    let kind = fields.get("type").and_then(AnyJson::as_str).unwrap_or_default().to_owned();
    if let Some(AnyJson::Array(elements)) = fields.get_mut("elements") {
        for (number, one) in elements.iter_mut().enumerate() {
            match &*kind {
                "superchart" => *one = as_e2b_has_it(one.take()),
                "line" => name(one, "label", || format!("Line {number}")),
                "scatter" => name(one, "label", || format!("_child{number}")),
                "bar" => name(one, "group", || "Group 0".to_owned()),
                _ => {}
            }
        }
    }
    if fields.remove("orientation").is_some_and(|orientation| orientation == "horizontal") {
        let [x, y] = ["x_label", "y_label"].map(|label| fields.remove(label).unwrap_or_default());
        fields.extend([("x_label".to_owned(), y), ("y_label".to_owned(), x)]);
    }
    for axis in ["x", "y"] {
        if let Some(label) = fields.get(&format!("{axis}_label")) {
            let unit = label.as_str().and_then(unit).map(str::to_owned);
            fields.insert(format!("{axis}_unit"), unit.into());
        }
    }
    chart
}

/// Names an element that has no name.
fn name(element: &mut AnyJson, field: &str, name: impl Fn() -> String) {
    if let Some(place) = element.get_mut(field).filter(|its| its.is_null()) {
        *place = name().into();
    }
}

fn unit(label: &str) -> Option<&str> {
    [(" (", ")"), ("[", "]")].into_iter().find_map(|(begin, end)| {
        let (_, rest) = label.split_once(begin)?;
        rest.split_once(end).map(|(unit, _)| unit)
    })
}

/// Returns the exception of a run, or the reason why it was ended.
pub(in crate::http) fn error(execution: &Execution) -> Option<AnyJson> {
    if let Some(exception) = &execution.exception {
        return Some(json!({
            "type": "error",
            // Clients expect the bare class name, even for a class inside of a function.
            "name": exception.bare_name(),
            "value": exception.message,
            "traceback": exception.traceback,
        }));
    }
    if let Some(termination) = &execution.termination {
        return Some(failed("ExecutionTerminated", &termination.message));
    }
    let exit = Shown::of(execution)?;
    Some(json!({
        "type": "error",
        "name": exit.name,
        "value": exit.message,
        "traceback": exit.line(),
    }))
}

/// Returns an error without a traceback.
pub(in crate::http) fn failed(name: &str, value: &str) -> AnyJson {
    let traceback = format!("{name}: {value}");
    json!({"type": "error", "name": name, "value": value, "traceback": traceback})
}
