#!/usr/bin/env bash
# validate.sh: `plumb validate` by position; a blank value leaves its flag out.
#   OUTPUT_SUBDIR=validation TITLE="vLLM vs LLMServingSim" LOG_LEVEL=INFO tools/validate.sh <bench_dir> <sim_csv> <sim_log> [prefix]
# PLUMB names the program: default the one built in build/cpu, else the one on PATH.
set -euo pipefail
if [ $# -lt 3 ] || [ $# -gt 4 ]; then
  echo "usage: validate.sh <bench_dir> <sim_csv> <sim_log> [prefix]" >&2
  exit 1
fi

built=$(dirname "${BASH_SOURCE[0]}")/../build/cpu/bin/plumb
if [ -z "${PLUMB:-}" ]; then
  [ -x "$built" ] && PLUMB=$built || PLUMB=plumb
fi

flags=(--bench-dir "$1" --sim-csv "$2" --sim-log "$3")
value() { [ -z "$2" ] || flags+=("$1" "$2"); }
value --prefix "${4-}"
value --output-subdir "${OUTPUT_SUBDIR-validation}"
value --title "${TITLE-vLLM vs LLMServingSim}"
value --log-level "${LOG_LEVEL-INFO}"

exec "$PLUMB" validate "${flags[@]}"
