#!/usr/bin/env bash
# bench.sh: `plumb run` driven by environment variables; a blank one leaves its flag out.
#   MODEL=Qwen/Qwen3-32B DATASET=workload.jsonl TP=2 tools/bench.sh
# Takes no arguments. PLUMB names the program: default the one built in build/cpu, else the one on PATH.
set -euo pipefail
if [ $# -gt 0 ]; then
  echo "bench.sh: takes no arguments, only environment variables (got: $*)" >&2
  exit 1
fi

built=$(dirname "${BASH_SOURCE[0]}")/../build/cpu/bin/plumb
if [ -z "${PLUMB:-}" ]; then
  [ -x "$built" ] && PLUMB=$built || PLUMB=plumb
fi
RUN_ID=${RUN_ID:-$(date +%Y%m%d-%H%M%S)}

flags=()
value() { [ -z "$2" ] || flags+=("$1" "$2"); }
switch() {
  case $2 in
    1) flags+=("$1") ;;
    0 | '') ;;
    *) echo "bench.sh: the variable for $1 must be 0 or 1 (got: $2)" >&2; exit 1 ;;
  esac
}

value --engine "${ENGINE-vllm}"
value --model "${MODEL-Qwen/Qwen3-32B}"
value --dataset "${DATASET-workloads/sharegpt-qwen3-32b-300-sps10.jsonl}"
value --output-dir "${OUTPUT_DIR-results/$RUN_ID}"
value --tensor-parallel-size "${TP-2}"
value --data-parallel-size "${DP-1}"
switch --enable-expert-parallel "${EXPERT_PARALLEL-0}"
switch --disable-custom-all-reduce "${DISABLE_CUSTOM_ALL_REDUCE-0}"
value --max-num-seqs "${MAX_NUM_SEQS-128}"
value --max-num-batched-tokens "${MAX_NUM_BATCHED_TOKENS-2048}"
value --max-model-len "${MAX_MODEL_LEN-}"
value --dtype "${DTYPE-bfloat16}"
value --kv-cache-dtype "${KV_CACHE_DTYPE-auto}"
value --seed "${SEED-42}"
value --load-format "${LOAD_FORMAT-auto}"
switch --resolve-only "${RESOLVE_ONLY-0}"
switch --skip-tokenizer-init "${SKIP_TOKENIZER_INIT-0}"
switch --enforce-eager "${ENFORCE_EAGER-0}"
value --tick-seconds "${TICK_SECONDS-1.0}"
value --num-reqs "${NUM_REQS-0}"
value --log-level "${LOG_LEVEL-INFO}"

exec "$PLUMB" run "${flags[@]}"
