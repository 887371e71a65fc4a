#!/bin/sh
# Builds third_party/shell/isolet_shell.wasm.gz on Debian 12 (x86_64): shell/build.sh
# README.md says what the parts are for. Nothing is installed: packages are unpacked into target/.
set -eu
umask 022
cd "$(dirname "$0")"
here=$(pwd)

bashkit=0.20.2
rust=1.96.0+dfsg1-1~deb12u2
llvm=1:22.1.8-1~deb12u1

# The compiler, the source of its standard library, and the linker.
tools=$here/target/tools
if [ ! -e "$tools/complete" ]; then
    rm -rf "$tools"
    mkdir -p "$tools/packages"
    (
        cd "$tools/packages"
        apt-get download "rustc-web=$rust" "rust-web-src=$rust" "libstd-rust-web-dev=$rust" \
            "libstd-rust-web-1.96=$rust" "libllvm22=$llvm" "lld-22=$llvm"
        for package in *.deb; do
            dpkg-deb --extract "$package" "$tools"
        done
    )
    rm -r "$tools/packages"
    touch "$tools/complete"
fi

# bashkit from the registry, whose digest `upstream/Cargo.lock` has, with our changes.
registry=$(cargo metadata --locked --format-version 1 --manifest-path upstream/Cargo.toml |
    python3 -c '
import json, os, sys
packages = json.load(sys.stdin)["packages"]
print(*(os.path.dirname(p["manifest_path"]) for p in packages if p["name"] == "bashkit"))')
rm -rf target/bashkit.new
cp -r "$registry" target/bashkit.new
test "$(sed -n 's/^version = "\(.*\)"/\1/p' target/bashkit.new/Cargo.toml | head -1)" = "$bashkit"
for change in patches/*.patch; do
    patch --quiet --strip 1 --directory target/bashkit.new < "$change"
done
if ! diff -rq target/bashkit.new target/bashkit > /dev/null 2>&1; then
    rm -rf target/bashkit
    mv target/bashkit.new target/bashkit
fi
rm -rf target/bashkit.new

# Debian's programs find the libraries that were unpacked with them.
usr=$tools/usr
wrapper() {
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' \
        "$usr/lib/x86_64-linux-gnu:$usr/lib/llvm-22/lib" "$2" > "target/$1"
    chmod +x "target/$1"
}
wrapper rustc "$usr/bin/rustc"
wrapper wasm-ld "$usr/lib/llvm-22/bin/wasm-ld"

# Paths of this machine must not get into the module.
cargo_home=${CARGO_HOME:-$HOME/.cargo}
export RUSTC="$here/target/rustc"
# `-Zbuild-std` with a compiler that is not nightly.
export RUSTC_BOOTSTRAP=1
export CARGO_ENCODED_RUSTFLAGS="$(printf '%s\037' \
    "-Clinker=$here/target/wasm-ld" -Clinker-flavor=wasm-ld \
    -Clink-arg=-zstack-size=16777216 \
    "--remap-path-prefix=$cargo_home=/cargo" \
    "--remap-path-prefix=$(dirname "$registry")=/registry" \
    "--remap-path-prefix=$usr=/usr" \
    "--remap-path-prefix=$here=/shell")--cfg=getrandom_backend=\"custom\""
cargo build --locked --release -Zbuild-std=std,panic_abort --target wasm32-unknown-unknown

# What the library contains, and the digests of all that it is made from; `tidy` compares them.
module=target/wasm32-unknown-unknown/release/isolet_shell.wasm
cd ..
gzip -9 --no-name < "shell/$module" > third_party/shell/isolet_shell.wasm.gz
{
    find shell/build.sh shell/Cargo.* shell/patches shell/src shell/upstream -type f |
        LC_ALL=C sort | xargs sha256sum
    sha256sum third_party/shell/isolet_shell.wasm.gz
} > third_party/shell/SHA256SUMS
ls -l "shell/$module" third_party/shell/isolet_shell.wasm.gz
