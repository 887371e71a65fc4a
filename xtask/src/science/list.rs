//! What `isolet-science` contains.

/// The packages that it always contains, with all that they need.
pub(super) const PACKAGES: [&str; 28] = [
    "beautifulsoup4",
    "httpx",
    "jinja2",
    "lxml",
    "markdown",
    "matplotlib",
    "networkx",
    "numpy",
    "openpyxl",
    "pandas",
    "pillow",
    "plotly",
    "pydantic",
    "pypdf",
    "python-docx",
    "python-pptx",
    "pyyaml",
    "regex",
    "reportlab",
    "requests",
    "rich",
    "scikit-learn",
    "scipy",
    "seaborn",
    "sympy",
    "tabulate",
    "tqdm",
    "xlsxwriter",
];

/// Those that need builds which only Pyodide has, and what is taken without its distribution: the
/// first of these that can be had, or nothing.
pub(super) const OF_PYODIDE: [&[&str]; 5] = [
    // jsonschema 4.18 needs rpds-py, which is Rust.
    &["altair", "altair,jsonschema<4.18"],
    &["duckdb"],
    &["polars"],
    &["pyarrow"],
    &["statsmodels"],
];

/// What is often imported together. A session that imports it starts from an image.
pub(super) const SETS: [&str; 4] = [
    "numpy",
    "numpy,pandas",
    "numpy,pandas,matplotlib",
    "numpy,pandas,matplotlib,seaborn,scipy,scikit-learn",
];
