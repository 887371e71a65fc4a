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

/// Those of which only Pyodide has builds. They are left out if its distribution is not at hand.
pub(super) const OF_PYODIDE: [&str; 5] = ["altair", "duckdb", "polars", "pyarrow", "statsmodels"];

/// What is often imported together. A session that imports it starts from an image.
pub(super) const SETS: [&str; 4] = [
    "numpy",
    "numpy,pandas",
    "numpy,pandas,matplotlib",
    "numpy,pandas,matplotlib,seaborn,scipy,scikit-learn",
];
