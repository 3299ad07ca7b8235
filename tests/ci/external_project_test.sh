#!/usr/bin/env bash
# external_project_test.sh BUILD_DIR: installs the build, builds external_project against nothing but the installed
# tree, and runs what came out.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

cmake --install "$build" --prefix "$work/installed" >"$work/install.log" || fail "install: $(tail -3 "$work/install.log")"
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
cmake -S "$here/external_project" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/installed" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS=-O0 >"$work/configure.log" 2>&1 || {
  cat "$work/configure.log" >&2
  fail "configure"
}
cmake --build "$work/build" || fail "build"
cd "$work"

listed=$(build/reversing_suite build --benchmark_list_tests=true)
[ "$(grep -c '^reversing/' <<<"$listed")" = 2 ] || fail "the suite lists: $listed"
build/reversing_suite build || fail "the suite ended with $?"
status=0
build/reversing_suite build --benchmark_filter=nothing_of_this_name || status=$?
[ $status = 2 ] || fail "a filter that matches nothing ended with $status instead of 2"

for beside in plumb_guard plumbline_vllm_worker.py plumbline_vllm_facts.py; do
  [ -f "installed/bin/$beside" ] || fail "the vllm engine needs $beside, which is not installed"
done
installed/bin/plumb --version || fail "the installed plumb does not start"
echo '{"input_toks": 3, "output_toks": 4, "arrival_time_ns": 0, "input_tok_ids": [7, 8, 9]}' >workload.jsonl
run=(installed/bin/plumb run --model none --dataset workload.jsonl --save-output-ids)
PLUMBLINE_ENGINE_PATH=$work/build "${run[@]}" --engine reversing --output-dir out || fail "the plug-in's run ended with $?"
grep -Eq '"output_tok_ids": ?\[9, ?8, ?7, ?9\]' out/requests.jsonl || fail "the answer is $(cat out/requests.jsonl)"
status=0
message=$("${run[@]}" --engine reversing --output-dir unused 2>&1) || status=$?
[ $status = 1 ] || fail "an engine without its plug-in ended with $status: $message"
echo "engine and suite of an outside project: fine"
