//! Makes wheels.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes a wheel with one module.
#[expect(clippy::must_use_candidate, reason = "many tests need no path")]
pub fn wheel(directory: &Path, name: &str, version: &str, module: &str) -> PathBuf {
    wheel_that_needs(directory, name, version, module, &[])
}

/// Makes a wheel with one module, which needs these distributions.
#[expect(clippy::must_use_candidate, reason = "many tests need no path")]
pub fn wheel_that_needs(
    directory: &Path,
    name: &str,
    version: &str,
    module: &str,
    needs: &[&str],
) -> PathBuf {
    let path = directory.join(format!("{name}-{version}-py3-none-any.whl"));
    let script = "import sys, zipfile\n\
        path, name, version, module, *needs = sys.argv[1:]\n\
        needs = ''.join(f'Requires-Dist: {need}\\n' for need in needs)\n\
        with zipfile.ZipFile(path, 'w') as z:\n\
        \x20   z.writestr(f'{name}.py', module)\n\
        \x20   z.writestr(f'{name}-{version}.dist-info/METADATA', f'Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n{needs}')\n\
        \x20   z.writestr(f'{name}-{version}.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
        \x20   z.writestr(f'{name}-{version}.dist-info/RECORD', '')\n";
    let made = Command::new("python3")
        .args(["-c", script, path.to_str().unwrap(), name, version, module])
        .args(needs)
        .status()
        .unwrap();
    assert!(made.success());
    path
}
