//! Values whose methods fail in every way, for each surface.

use serde_json::json;

const PROGRAM: &str = include_str!("odd_values.py");

/// What [`AFTER`] is if the session has kept its variable.
pub const HERE: &str = "still here";

/// Whether the variable of [`cell`] is still there.
pub const AFTER: &str = "'still ' + 'here' if kept is not None else 'lost'";

/// Defines `odd` in a module, so that the cells' own variables are few.
#[must_use]
pub fn setup() -> String {
    let source = json!(PROGRAM);
    format!(
        "import types\nvalues = types.ModuleType('values')\nexec({source}, vars(values))\n\
         odd = values.odd\nNone"
    )
}

/// A cell whose last value is the odd one of this name.
#[must_use]
pub fn cell(name: &str) -> String {
    format!("print('before')\nkept = None\nkept = odd({name:?})\nkept")
}
