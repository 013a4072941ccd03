#!/bin/sh
# Fuzzes each target with libFuzzer for SECONDS (argument, default 20) on one core: run.sh [seconds [target...]]
# New inputs stay outside the corpus; one that fails is kept in the working directory.
set -eu
cd "$(dirname "$0")"
seconds=${1:-20}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- map lov names
command -v clang >/dev/null || { echo "clang and its libFuzzer are needed (Debian: apt install clang libclang-rt-14-dev)"; exit 1; }
work=${TMPDIR:-/tmp}/tarazu-fuzz.$(id -u)
preload=../../preload
for target in "$@"; do
    mkdir -p "$work/$target"
    clang -g -O1 -std=gnu11 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I$preload \
        fuzz_"$target".c $preload/core/*.c $preload/base/pages.c $preload/base/rawsys.c -o "$work/fuzz_$target"
    echo "== $target: $seconds s"
    "$work/fuzz_$target" -max_total_time="$seconds" -max_len=4096 -verbosity=0 -print_final_stats=1 \
        -artifact_prefix="$PWD/failed-$target-" "$work/$target" "corpus/$target"
done
