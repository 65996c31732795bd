#!/bin/sh
# Installs Margay on a machine of a continuous integration, and says how programs find it:
#
#   packaging/ci/install.sh --from margay-0.2.0-x86_64-linux.tar.gz --to .margay
#   . .margay/env
#   ctest
#
#   --from FILE|URL    the tarball of `make dist`, or the wheel of `make wheel`, which python3's pip installs ($PYTHON's, if set)
#   --to FOLDER        where a tarball is unpacked; FOLDER/env is for the shell to read
#   --sums FILE|URL    a list as sha256sum writes it, SHA256SUMS, by which the file is checked
#   --sha256 HEX       its checksum, by which it is checked; what comes from a URL needs one of both
#   --library-path no  FOLDER/env sets PATH alone: programs are started by `margay run -- …`
#   --github           also tells the job's next steps ($GITHUB_ENV, $GITHUB_PATH), and the workflow ($GITHUB_OUTPUT)
#
# An empty value counts as an option that is not given.
set -eu

say() { printf 'margay: %s\n' "$*"; }
die() { printf 'margay: %s\n' "$*" >&2; exit 1; }

from= to= sums= sha256= library_path=yes github=
while [ $# -gt 0 ]; do
    if [ "$1" = --github ]; then
        github=yes
        shift
        continue
    fi
    [ $# -ge 2 ] || die "$1 needs a value"
    case $1 in
        --from) from=$2 ;;
        --to) to=$2 ;;
        --sums) sums=$2 ;;
        --sha256) sha256=$2 ;;
        --library-path) library_path=${2:-yes} ;;
        *) die "no option $1" ;;
    esac
    shift 2
done
[ -n "$from" ] || die "say --from FILE or --from URL: Margay's tarball or wheel"
[ -n "$to" ] || die "say --to FOLDER"
case $to in *[\':]*) die "a folder on a search path cannot have a colon or a quote in its name: $to" ;; esac
case $library_path in yes | no) ;; *) die "--library-path is yes or no, not $library_path" ;; esac

[ "$(uname -s) $(uname -m)" = 'Linux x86_64' ] || die "runs on Linux on x86_64 only; this is $(uname -s) on $(uname -m)"
case $(ldd --version 2>&1) in *musl*) die "needs glibc; this system has musl, as Alpine Linux has: take an image of Debian or Ubuntu" ;; esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# fetch FILE|URL: leaves it in $fetched.
fetch() {
    case $1 in
        *://*)
            command -v curl >/dev/null || die "needs curl to fetch $1"
            fetched=$work/$(basename "$1")
            curl -fsSL --retry 3 -o "$fetched" "$1" || die "cannot fetch $1"
            ;;
        *)
            [ -f "$1" ] || die "no file $1"
            fetched=$1
            ;;
    esac
}

case $from in
    *.tar.gz | *.whl) ;;
    *.deb) die "install the package by apt-get: apt-get install ./$(basename "$from"); its library is in /usr/lib/margay" ;;
    # On the Python package index that name is another project's.
    pip | margay | margay=*) die "'$from' on the Python package index is another project; give a wheel's file or URL" ;;
    *) die "$from is neither a .tar.gz nor a .whl" ;;
esac
case $from in *://*) [ -n "$sums$sha256" ] || die "what comes from a URL needs --sums or --sha256" ;; esac

if [ -n "$sums" ]; then
    fetch "$sums"
    listed=$(awk -v name="$(basename "$from")" '{ sub(/^\*/, "", $2) } $2 == name { print $1 }' "$fetched")
    [ -n "$listed" ] || die "$sums does not list $(basename "$from")"
    [ -z "$sha256" ] || [ "$sha256" = "$listed" ] || die "--sha256 and $sums differ about $(basename "$from")"
    sha256=$listed
fi
fetch "$from"
file=$fetched
if [ -n "$sha256" ]; then
    is=$(sha256sum "$file" | cut -d ' ' -f 1)
    [ "$is" = "$sha256" ] || die "$from is not what was expected: its SHA-256 is $is, not $sha256"
    say "the checksum of $(basename "$from") is right"
fi

case $file in
    *.tar.gz)
        # What is there and is no Margay's stays.
        if [ -e "$to" ] && [ ! -x "$to/bin/margay" ] && [ -n "$(ls -A "$to")" ]; then
            die "$to is not empty, and not Margay's"
        fi
        mkdir "$work/unpacked"
        tar -xzf "$file" --strip-components=1 --no-same-owner -C "$work/unpacked" || die "$from does not unpack"
        [ -x "$work/unpacked/bin/margay" ] || die "$from has no bin/margay"
        rm -rf "$to"
        mkdir -p "$(dirname "$to")"
        mv "$work/unpacked" "$to"
        home=$(cd "$to" && pwd)
        ;;
    *.whl)
        python=${PYTHON:-python3}
        # --no-index: nothing of that name may come from elsewhere.
        "$python" -m pip install -q --disable-pip-version-check --no-index --force-reinstall "$file" ||
            die "pip does not install $from (on Debian and Ubuntu it wants an environment: python3 -m venv)"
        home=$("$python" -c 'import importlib.util as u; print(u.find_spec("margay").submodule_search_locations[0])')
        mkdir -p "$to"
        ;;
esac

# An older glibc than that which it was built for shows here.
"$home/bin/margay" info >"$work/info" 2>&1 || die "does not start on this machine: $(cat "$work/info")"
say "$(head -n 1 "$work/info") is in $home"

{
    echo "export PATH='$home/bin':\"\$PATH\""
    [ $library_path = no ] || echo "export LD_LIBRARY_PATH='$home/lib'\${LD_LIBRARY_PATH:+:\"\$LD_LIBRARY_PATH\"}"
} >"$to/env"

if [ -n "$github" ]; then
    echo "$home/bin" >>"$GITHUB_PATH"
    [ $library_path = no ] || echo "LD_LIBRARY_PATH=$home/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" >>"$GITHUB_ENV"
    { echo "home=$home"; echo "library=$home/lib"; } >>"$GITHUB_OUTPUT"
fi

# A driver that is there is never shadowed silently.
driver=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | awk '$1 == "libcuda.so.1" { print $NF; exit }')
if [ -n "$driver" ]; then
    case $library_path in
        yes) say "this machine has a driver, $driver: programs use Margay in its place, because LD_LIBRARY_PATH names it first" ;;
        no) say "this machine has a driver, $driver: programs use it, but for those that \`margay run\` starts" ;;
    esac
fi
