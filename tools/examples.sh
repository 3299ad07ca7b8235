#!/usr/bin/env bash
# examples.sh: simulate or judge the stored examples again, from what each example itself says.
set -euo pipefail

usage() {
  cat <<'END'
usage: examples.sh run|validate [<hardware>/<model>]

  run       simulate into OUTPUT/<example>/sim.csv and sim.log, and compare sim.csv byte for byte with
            <example>/outputs/sim.csv where that is stored
  validate  judge what run wrote, else the stored outputs, against <example>/vllm; summary and plots go to
            OUTPUT/<example>/validation. Differences are reported, not judged: the exit code says whether it ran

Without a name: every example, the headline ones and those below diagnostic/.

  EXAMPLES    folder of the examples: <EXAMPLES>/<hardware>/<model>/config.json; default: bench/examples of the
              reference's files (PLUMBLINE_GOLDEN_PATH, else ../shared/packs/llmservingsim)
  BLOCK_SIZE  tokens a KV block; default: what the example's vllm/meta.json recorded, else the simulator's own
  OUTPUT      folder for the results; default: results/examples. The examples themselves stay as they are
  PLUMB       the program; default: the one built in build/cpu, else the one on PATH

Reads the recordings with python3.
END
}

fail() {
  echo "examples.sh: $1" >&2
  exit 1
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case "${1:-}" in
  -h | --help) usage && exit 0 ;;
  run | validate) [ $# -le 2 ] || { usage >&2; exit 1; } ;;
  *) usage >&2; exit 1 ;;
esac
action=$1

pack=${PLUMBLINE_GOLDEN_PATH:-$here/../shared/packs/llmservingsim}
examples=${EXAMPLES:-$pack/bench/examples}
[ -d "$examples" ] || fail "$examples is not there: name the folder of the examples with EXAMPLES"
root=$(cd "$examples/../.." && pwd)
output=${OUTPUT:-results/examples}
if [ -z "${PLUMB:-}" ]; then
  [ -x "$here/build/cpu/bin/plumb" ] && PLUMB=$here/build/cpu/bin/plumb || PLUMB=plumb
fi
PLUMB=$(command -v "$PLUMB") || fail "$PLUMB is not there: build it or name it with PLUMB"

# What the example's recording says, one a line, blank where it says nothing. Data-parallel recordings have one
# kv_cache.block_size an engine.
recorded() { # <meta.json>
  python3 - "$1" <<'END'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    meta = json.load(file)
kwargs = meta.get("engine_kwargs", {})
cache = meta.get("kv_cache") or {}
engines = cache.get("per_engine") or [{}]
values = [meta.get("dataset_path"), meta.get("num_requests")]
values += [kwargs.get(key) for key in ("max_num_seqs", "max_num_batched_tokens", "dtype", "kv_cache_dtype")]
values.append(cache.get("block_size", engines[0].get("block_size")))
for value in values:
    print("" if value is None else value)
END
}

names() {
  (cd "$examples" && find . -name config.json -path '*/*/*' | sed -e 's|^\./||' -e 's|/config.json$||' | sort)
}

run_one() {
  local folder=$examples/$1 meta=$examples/$1/vllm/meta.json out
  [ -f "$meta" ] || fail "$meta is not there: it says what to simulate"
  out=$output/$1
  mkdir -p "$out"
  local says flags
  says=$(recorded "$meta") || fail "$meta cannot be read"
  mapfile -t says <<<"$says"
  flags=(--cluster-config "$folder/config.json" --dataset "$root/${says[0]}" --output "$out/sim.csv"
    --log "$out/sim.log")
  flag() { [ -z "$2" ] || flags+=("$1" "$2"); }
  flag --num-reqs "${says[1]}"
  flag --max-num-seqs "${says[2]}"
  flag --max-num-batched-tokens "${says[3]}"
  flag --dtype "${says[4]}"
  flag --kv-cache-dtype "${says[5]}"
  flag --block-size "${BLOCK_SIZE:-${says[6]:-}}"
  "$PLUMB" simulate "${flags[@]}" || return 1
  if [ ! -f "$folder/outputs/sim.csv" ]; then
    echo "$1: simulated, nothing stored to compare with"
  elif cmp -s "$out/sim.csv" "$folder/outputs/sim.csv"; then
    echo "$1: sim.csv is the stored one to the byte"
  else
    echo "$1: sim.csv differs from the stored one" >&2
    return 1
  fi
}

validate_one() {
  local folder=$examples/$1 out=$output/$1 sim=$output/$1
  [ -f "$sim/sim.csv" ] || sim=$folder/outputs
  mkdir -p "$out/validation"
  "$PLUMB" validate --bench-dir "$folder/vllm" --sim-csv "$sim/sim.csv" --sim-log "$sim/sim.log" \
    --output-subdir "$(cd "$out/validation" && pwd)" --report-only || return 1
  echo "$1: judged $sim"
}

wanted=${2:-}
all=$(names)
[ -n "$all" ] || fail "$examples has no example: <hardware>/<model>/config.json"
if [ -n "$wanted" ] && ! grep -qxF "$wanted" <<<"$all"; then
  fail "$wanted is not an example; there are: ${all//$'\n'/, }"
fi
failed=0
while IFS= read -r name; do
  [ -z "$wanted" ] || [ "$name" = "$wanted" ] || continue
  "${action}_one" "$name" || failed=1
done <<<"$all"
exit "$failed"
