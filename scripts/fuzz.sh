#!/bin/sh
# Fuzzes every target of fuzz/ for $1 seconds each, from the seeds in testdata/fuzz.
set -eu
cd "$(dirname "$0")/../fuzz"
seconds=${1:-60}
if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "error: fuzzing needs a nightly Rust" >&2
    echo "hint: rustup toolchain install nightly --profile minimal" >&2
    exit 2
fi
if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo "error: fuzzing needs cargo-fuzz" >&2
    echo "hint: cargo install cargo-fuzz --locked" >&2
    exit 2
fi
for target in workspace patch patchset map xml hs3 card root_file; do
    mkdir -p "corpus/$target"
    case $target in
        card) seeds="../examples/combine" ;;
        hs3) seeds="../testdata/hs3/written ../testdata/hs3/root" ;;
        xml) seeds="../testdata/histfactory ../testdata/histfactory/channels" ;;
        root_file) seeds=../testdata/root ;;
        *) seeds=../testdata/fuzz/$target ;;
    esac
    # Two folders are two words.
    # shellcheck disable=SC2086
    cargo +nightly fuzz run "$target" "corpus/$target" $seeds -- \
        -max_total_time="$seconds" -max_len=16384 -timeout=20
done
