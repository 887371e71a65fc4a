//! The guest's interpreter, in terms of wheel tags and environment markers.

/// The full version of CPython.
pub(crate) const PYTHON: &str = "3.14.2";
/// The version of Pyodide's ABI, as in its lock.
pub(crate) const ABI_VERSION: &str = "2026_0";
/// The ABI tag of native wheels.
pub(crate) const ABI: &str = "cp314";
/// The platform tag of native wheels.
pub(crate) const PLATFORM: &str = "pyemscripten_2026_0_wasm32";

const MINOR: u32 = 14;

/// The guest's environment markers.
pub(crate) const MARKERS: [(&str, &str); 11] = [
    ("implementation_name", "cpython"),
    ("implementation_version", PYTHON),
    ("os_name", "posix"),
    ("platform_machine", "wasm32"),
    ("platform_python_implementation", "CPython"),
    ("platform_release", "5.0.3"),
    ("platform_system", "Emscripten"),
    ("platform_version", "#1"),
    ("python_full_version", PYTHON),
    ("python_version", "3.14"),
    ("sys_platform", "emscripten"),
];

/// Returns how well a wheel with these tags matches; higher is better. `None` if it cannot be
/// loaded. Each tag may consist of several, separated by dots.
pub(crate) fn rank(pythons: &str, abis: &str, platforms: &str) -> Option<u32> {
    pythons
        .split('.')
        .flat_map(|python| abis.split('.').map(move |abi| (python, abi)))
        .flat_map(|(python, abi)| platforms.split('.').map(move |platform| (python, abi, platform)))
        .filter_map(|(python, abi, platform)| rank_one(python, abi, platform))
        .max()
}

fn rank_one(python: &str, abi: &str, platform: &str) -> Option<u32> {
    let minor = |prefix: &str| python.strip_prefix(prefix)?.parse::<u32>().ok();
    let native = platform == PLATFORM;
    match abi {
        "cp314" if native && minor("cp3") == Some(MINOR) => Some(1000),
        "abi3" if native => {
            minor("cp3").filter(|minor| (2..=MINOR).contains(minor)).map(|m| 500 + m)
        }
        "none" if native || platform == "any" => {
            let fits = python == "py3"
                || minor("py3").is_some_and(|minor| minor <= MINOR)
                || minor("cp3") == Some(MINOR);
            fits.then_some(if native { 2 } else { 1 })
        }
        _ => None,
    }
}
