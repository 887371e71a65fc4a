#!/bin/sh
# Installs isolet for this user, upgrades it, or removes it: `install.sh --help`. POSIX sh, no root.
#
# The whole of an installation is in PREFIX/lib/isolet. Programs, manual pages and completions are
# links to it. A new version is unpacked beside the old one, tried, and then renamed into its place.
set -eu

VERSION=0.1.0
RELEASES=https://github.com/isolet/isolet/releases/download
GUIDE=https://github.com/isolet/isolet/blob/main/docs/guides/install.md

usage() {
  cat <<EOF
Usage: sh install.sh [OPTIONS]
       curl -fsSL $RELEASES/v$VERSION/install.sh | sh -s -- [OPTIONS]

  --version VERSION  install this version instead of $VERSION
  --prefix DIR       install below DIR [default: \$ISOLET_PREFIX or ~/.local]
  --science          also numpy, pandas, matplotlib and others (isolet-science)
  --uninstall        remove what is installed below the prefix
  --purge            with --uninstall: also caches, data and state of this user
  -h, --help         print this

Environment:
  ISOLET_RELEASE     where the files of the release are: an address, or a directory of this machine
                     [default: the release of that version in isolet's repository]
EOF
}

say() { printf 'isolet: %s\n' "$*" >&2; }
fail() {
  printf 'error: %s\n' "$1" >&2
  if [ $# -gt 1 ]; then printf 'hint: %s\n' "$2" >&2; fi
  exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

# Sets `target` to Rust's name of this platform.
find_target() {
  case $(uname -m) in
    x86_64 | amd64) processor=x86_64 ;;
    aarch64 | arm64) processor=aarch64 ;;
    *) processor=$(uname -m) ;;
  esac
  case $(uname -s) in
    Linux)
      # A system may have both C libraries. Programs for the GNU one are then as good.
      library=musl
      for loader in /lib/ld-linux* /lib64/ld-linux* /usr/lib/ld-linux*; do
        if [ -e "$loader" ]; then library=gnu; fi
      done
      target=$processor-unknown-linux-$library
      ;;
    Darwin) target=$processor-apple-darwin ;;
    MINGW* | MSYS* | CYGWIN*) fail "isolet does not run on Windows itself" \
      "run install.ps1, which installs it into WSL" ;;
    *) target=$processor-$(uname -s) ;;
  esac
}

# fetch NAME FILE: gets a file of the release.
fetch() {
  case $base in
    file://* | /*) cp "${base#file://}/$1" "$2" || return 1 ;;
    https://*)
      if has curl; then curl -fsSL --proto '=https' --tlsv1.2 --retry 3 -o "$2" "$base/$1"
      elif has wget; then wget -q -O "$2" "$base/$1"
      else fetch_by_apt "$1" "$2"; fi
      ;;
    http://*)
      if has curl; then curl -fsSL --retry 3 -o "$2" "$base/$1"
      elif has wget; then wget -q -O "$2" "$base/$1"
      else fetch_by_apt "$1" "$2"; fi
      ;;
    *) fail "ISOLET_RELEASE is \`$base\`, which is neither an address nor an absolute path" ;;
  esac
}

# A bare Debian has no other program that requests files.
fetch_by_apt() {
  if [ ! -x /usr/lib/apt/apt-helper ]; then
    fail "there is neither curl nor wget" \
      "install one, or set ISOLET_RELEASE to a directory with the files"
  fi
  /usr/lib/apt/apt-helper -qq download-file "$base/$1" "$2" >/dev/null
}

digest() {
  if has sha256sum; then sha256sum "$1"
  elif has shasum; then shasum -a 256 "$1"
  else fail "there is neither sha256sum nor shasum, so the files cannot be verified"; fi | cut -d ' ' -f 1
}

# get NAME: gets an archive into $work and verifies it.
get() {
  expected=$(sed -n "s/^\([0-9a-f]\{64\}\)  $1\$/\1/p" "$work/SHA256SUMS")
  if [ -z "$expected" ]; then
    others=$(sed -n "s/^.*  \(isolet-[0-9].*\)\.tar\.gz\$/\1/p" "$work/SHA256SUMS" | tr '\n' ' ')
    fail "this release has no $1; it has ${others:-no archive}" \
      "a container runs it: $GUIDE says how"
  fi
  say "fetching $base/$1"
  fetch "$1" "$work/$1" || fail "cannot get $base/$1" "try again, or set ISOLET_RELEASE"
  got=$(digest "$work/$1")
  if [ "$got" != "$expected" ]; then
    fail "$1 is not what SHA256SUMS says: expected $expected, got $got" \
      "it was cut off or changed on the way; nothing was installed"
  fi
}

# Removes what a killed installation left, and puts back an old one that it had set aside.
repair() {
  if [ -d "$old" ] && [ ! -e "$home" ]; then mv "$old" "$home"; fi
  rm -rf "$old"
  for left in "$prefix"/lib/.isolet-new.*; do
    if [ -d "$left" ] && ! kill -0 "${left##*.}" 2>/dev/null; then rm -rf "$left"; fi
  done
}

# Removes directories that are empty, of a list with one on each line.
remove_empty() {
  printf '%s\n' "$1" | while IFS= read -r directory; do
    if [ -n "$directory" ]; then rmdir "$directory" 2>/dev/null || :; fi
  done
}

# make DIR: makes a directory with its parents, and notes which are new, the innermost first.
make() {
  if [ ! -d "$1" ]; then
    make "$(dirname "$1")"
    mkdir "$1"
    made="$1
$made"
  fi
}

# Links the programs, manual pages and completions of what is installed.
link() {
  (cd "$home" && find bin share/man share/bash-completion share/zsh share/fish -type f) |
    while IFS= read -r file; do
      up=$(dirname "$file" | sed 's|[^/][^/]*|..|g')
      if [ -e "$prefix/$file" ] && [ ! -L "$prefix/$file" ]; then
        say "left $prefix/$file as it is: it is of something else"
      else
        ln -sfn "$up/lib/isolet/$file" "$prefix/$file"
      fi
    done
}

# Removes links to what is not installed any more; with `all`, every link to it.
unlink_old() {
  for file in "$prefix"/bin/isolet "$prefix"/share/man/man1/isolet*.1 \
    "$prefix"/share/bash-completion/completions/isolet \
    "$prefix"/share/zsh/site-functions/_isolet \
    "$prefix"/share/fish/vendor_completions.d/isolet.fish; do
    if [ -L "$file" ]; then
      case $(readlink "$file") in
        */lib/isolet/*) if [ "$1" = all ] || [ ! -e "$file" ]; then rm "$file"; fi ;;
      esac
    fi
  done
}

install() {
  find_target
  name=isolet-$version-$target
  base=${ISOLET_RELEASE:-$RELEASES/v$version}
  base=${base%/}
  if [ -e "$prefix/bin/isolet" ] && [ ! -L "$prefix/bin/isolet" ]; then
    fail "$prefix/bin/isolet is there already, and is not of this installer" \
      "remove it first, as by pip uninstall isolet, or choose another --prefix"
  fi
  # An upgrade keeps them.
  if [ -d "$home/share/isolet/packages" ]; then science=yes; fi
  # Below the prefix, so that the last step is a rename; made first, so that it can be taken back.
  repair
  made=
  if [ -f "$home/directories" ]; then made=$(cat "$home/directories"); fi
  for directory in bin lib share/man/man1 share/bash-completion/completions \
    share/zsh/site-functions share/fish/vendor_completions.d; do
    make "$prefix/$directory"
  done
  mkdir "$new"
  work=$new/.download
  mkdir "$work"
  fetch SHA256SUMS "$work/SHA256SUMS" ||
    fail "cannot get $base/SHA256SUMS" "is there a version $version? ISOLET_RELEASE names another place"
  get "$name.tar.gz"
  tar -xzof "$work/$name.tar.gz" -C "$work"
  if [ "$science" = yes ]; then
    get "isolet-science-$version.tar.gz"
    tar -xzof "$work/isolet-science-$version.tar.gz" -C "$work/$name"
  fi
  "$work/$name/bin/isolet" --version >"$work/said" 2>&1 || {
    cat "$work/said" >&2
    fail "the program does not run here; nothing was installed" \
      "$GUIDE lists what it needs, and containers for other systems"
  }
  printf '%s\n' "$made" | sed '/^$/d' >"$work/$name/directories"
  now=$(head -n 1 "$work/said") before=
  if [ -x "$home/bin/isolet" ]; then
    before=$("$home/bin/isolet" --version 2>/dev/null | head -n 1 || :)
  fi
  # From here on it is the new one or, if this is interrupted, the old one.
  if [ -e "$home" ]; then mv "$home" "$old"; fi
  swapped=yes
  mv "$work/$name" "$home"
  unlink_old missing
  link
  rm -rf "$old" "$new"
  complete=yes
  say "installed $now in $home${before:+, in place of $before}"
  say "the command is $prefix/bin/isolet"
  case :${PATH:-}: in
    *:"$prefix/bin":*) ;;
    *) say "which is not on PATH; add it: export PATH=\"$prefix/bin:\$PATH\"" ;;
  esac
  say "to remove it: $(again) --uninstall${given:+ --prefix $(quoted "$prefix")}"
  say "with --purge, that also removes its caches, data and state"
}

# Prints what runs this script again. One that came through a pipe is in no file.
again() {
  if [ -f "$0" ] && [ "${0##*/}" = install.sh ]; then printf 'sh %s' "$(quoted "$0")"; return; fi
  case $base in
    file://* | /*) printf 'sh %s' "$(quoted "${base#file://}/install.sh")" ;;
    *)
      getter='curl -fsSL'
      if ! has curl && has wget; then getter='wget -qO -'; fi
      printf '%s %s | sh -s --' "$getter" "$(quoted "$base/install.sh")"
      ;;
  esac
}

# Prints a word as a shell reads it.
quoted() {
  case $1 in
    *[!A-Za-z0-9/._+:-]*) printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")" ;;
    *) printf %s "$1" ;;
  esac
}

uninstall() {
  repair
  directories=
  if [ -d "$home" ]; then
    directories=$(cat "$home/directories" 2>/dev/null || :)
    unlink_old all
    rm -rf "$home"
    say "removed $home and the links to it"
  else
    say "nothing is installed in $home"
  fi
  user=${HOME:-/nonexistent}
  cache=${XDG_CACHE_HOME:-$user/.cache}
  data=${XDG_DATA_HOME:-$user/.local/share} state=${XDG_STATE_HOME:-$user/.local/state}
  for directory in "$cache/isolet" "$data/isolet" "$state/isolet"; do
    if [ ! -e "$directory" ]; then continue; fi
    if [ "$purge" = yes ]; then
      rm -rf "$directory"
      say "removed $directory"
    else
      say "left $directory; --uninstall --purge removes it"
    fi
  done
  if [ "$purge" = yes ]; then remove_empty "$cache
$data
$state"; fi
  # Only those that the installation made, and only if nothing else is in them.
  remove_empty "$directories"
}

main() {
  version=$VERSION prefix=${ISOLET_PREFIX:-} given=${ISOLET_PREFIX:-}
  science=no action=install purge=no swapped=no complete=no
  while [ $# -gt 0 ]; do
    case $1 in
      --version | --prefix)
        if [ $# -lt 2 ]; then fail "$1 needs a value"; fi
        if [ "$1" = --version ]; then version=${2#v}; else prefix=$2 given=$2; fi
        shift
        ;;
      --science) science=yes ;;
      --uninstall) action=uninstall ;;
      --purge) purge=yes ;;
      -h | --help) usage && exit ;;
      *) fail "there is no option $1" "--help lists them" ;;
    esac
    shift
  done
  if [ $purge = yes ] && [ $action = install ]; then fail "--purge goes with --uninstall"; fi
  if [ -z "$prefix" ]; then
    prefix=${HOME:?is not set, so say --prefix DIR}/.local
  fi
  case $prefix in
    /*) ;;
    *) prefix=$(pwd)/$prefix ;;
  esac
  home=$prefix/lib/isolet old=$prefix/lib/.isolet-old new=$prefix/lib/.isolet-new.$$
  trap 'stopped' EXIT
  trap 'exit 130' INT TERM HUP
  $action
}

# However this ends, what there was before is there, or what is new.
stopped() {
  status=$?
  if [ "$action" = install ] && [ "$complete" = no ]; then
    if [ -d "$old" ]; then
      rm -rf "$home"
      mv "$old" "$home"
    elif [ "$swapped" = yes ]; then
      unlink_old all
      rm -rf "$home"
    fi
    rm -rf "$new"
    if [ ! -e "$home" ]; then remove_empty "${made:-}"; fi
  fi
  exit "$status"
}

# The last line: nothing is done with a script that was cut off on its way.
main "$@"
