#!/usr/bin/env bash
# ci/do.sh JOB [ARGUMENT...]: every job of the project, on a developer's machine and in CI alike.
# Settings (environment): PLUMBLINE_JOBS (parallel jobs, default: all cores), PLUMBLINE_FUZZ_RUNS (mutations a fuzz
# target tries, default 2000) and PLUMBLINE_FUZZ_SECONDS (for at most so long, default 10), PLUMBLINE_REQUIRE (gpu,vllm:
# a skip for want of these is a failure),
# PLUMBLINE_NOISE (skip: a run that only noise made invalid is skipped by name; the job test sets it),
# PLUMBLINE_GOLDEN_PATH (folders with recorded examples; default ../shared/packs/llmservingsim where that exists).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

JOBS=${PLUMBLINE_JOBS:-$(nproc)}
REPORTS=$PWD/build/reports

# What a build and the engines need on Debian 12. libopenblas0-openmp, not libopenblas-dev: the latter brings the
# pthread build, which takes over libblas.so.3 and ignores the number of threads that libtorch asks for.
BUILD_PACKAGES=(g++ cmake ninja-build git libbenchmark-dev nlohmann-json3-dev libsimdjson-dev libcli11-dev libfmt-dev
  libspdlog-dev libyaml-cpp-dev libssl-dev libboost1.81-dev libgtest-dev libgmock-dev
  libtorch-dev libopenblas0-openmp libdnnl-dev gnuplot-nox)
TEST_PACKAGES=(clang-format python3-jsonschema)
COVERAGE_PACKAGES=(gcovr)
LINT_PACKAGES=(clang-tidy)

say() { printf '\n== %s\n' "$*"; }

fail() {
  printf 'ci/do.sh: %s\n' "$*" >&2
  exit 1
}

# Installs the packages that are missing, and asks no server anything when none is.
install_packages() {
  local missing=() package
  if ! command -v apt-get >/dev/null; then
    echo "no apt-get here: install the equivalents of: $*"
    return
  fi
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    echo "all $# packages are there"
    return
  fi
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "needs root or sudo to install: ${missing[*]}"
    as_root=(sudo)
  fi
  local log
  log=$(mktemp)
  { "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      -o Dpkg::Use-Pty=0 "${missing[@]}"; } >"$log" 2>&1 || {
    tail -20 "$log" >&2
    rm -f "$log"
    fail "apt-get could not install: ${missing[*]}"
  }
  rm -f "$log"
  echo "installed: ${missing[*]}"
}

# configure_and_build PRESET [CMAKE_ARGUMENT...] [-- TARGET...]
configure_and_build() {
  local preset=$1 arguments=() log
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    arguments+=("$1")
    shift
  done
  [ $# -eq 0 ] || shift
  mkdir -p "$REPORTS"
  log=$REPORTS/configure-$preset.log
  cmake --preset "$preset" "${arguments[@]}" >"$log" 2>&1 || {
    cat "$log" >&2
    fail "preset $preset could not be configured"
  }
  grep -E 'Plumbline:|Warning' "$log" || true
  ninja -C "build/$preset" -j "$JOBS" --quiet "$@"
}

CTEST=(ctest)

# run_ctest NAME PRESET CTEST_ARGUMENT...: leaves build/reports/NAME.xml (JUnit).
run_ctest() {
  local name=$1 preset=$2
  shift 2
  mkdir -p "$REPORTS"
  rm -f "$REPORTS/$name.xml"
  "${CTEST[@]}" --preset "$preset" -j "$JOBS" --no-tests=error --output-junit "$REPORTS/$name.xml" "$@"
}

use_recorded_examples() {
  if [ -z "${PLUMBLINE_GOLDEN_PATH:-}" ] && [ -d ../shared/packs/llmservingsim ]; then
    PLUMBLINE_GOLDEN_PATH=$(cd ../shared/packs/llmservingsim && pwd)
    export PLUMBLINE_GOLDEN_PATH
  fi
}

job_install() { ## install what builds and tests need (Debian 12; root or sudo)
  install_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
}

job_build() { ## build everything in Release, warnings as errors, into build/cpu
  configure_and_build cpu -DPLUMBLINE_WARNINGS_AS_ERRORS=ON "$@"
}

job_test() { ## run all tests that need no other device; arguments go to ctest
  use_recorded_examples
  # CI machines are shared: a run that only noise made invalid is skipped by name there.
  export PLUMBLINE_NOISE=${PLUMBLINE_NOISE-skip}
  run_ctest test cpu -LE '^(fuzz|bench)$' "$@"
}

# Time is never judged under a sanitizer, and the slow tests build projects of their own.
NOT_UNDER_SANITIZERS='^(fuzz|bench|timing|slow)$'

job_asan() { ## AddressSanitizer and UBSan run of everything but the torch engine
  use_recorded_examples
  configure_and_build asan
  run_ctest asan asan -LE "$NOT_UNDER_SANITIZERS" "$@"
}

# The programs whose tests start threads: scheduling, engines, replay.
TSAN_PROGRAMS=(core_test scripted_test replay_test)

job_tsan() { ## ThreadSanitizer run of scheduling and replay
  local programs
  programs=$(IFS='|' && echo "${TSAN_PROGRAMS[*]}")
  configure_and_build tsan -- "${TSAN_PROGRAMS[@]}"
  # g++ 12's ThreadSanitizer cannot map its shadow where the kernel randomises more than 28 bits.
  if [ "$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)" -gt 28 ]; then
    CTEST=(setarch "$(uname -m)" -R ctest)
  fi
  export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
  run_ctest tsan tsan -R "^($programs)\\." -LE "$NOT_UNDER_SANITIZERS" "$@"
}

job_fuzz() { ## fuzz each parser of outside data for a short while, under the sanitizers; longer with PLUMBLINE_FUZZ_RUNS
  configure_and_build asan -DPLUMBLINE_FUZZ_RUNS="${PLUMBLINE_FUZZ_RUNS:-2000}" \
    -DPLUMBLINE_FUZZ_SECONDS="${PLUMBLINE_FUZZ_SECONDS:-10}"
  run_ctest fuzz asan -L '^fuzz$' "$@"
}

job_format() { ## check the C++ format (clang-format 14, as Debian 12 has it)
  local tool
  tool=$(command -v clang-format-14 || command -v clang-format) || fail "clang-format is not installed"
  git ls-files -z '*.h' '*.cc' '*.cu' | xargs -0 -r -n 40 -P "$JOBS" "$tool" --dry-run -Werror
  echo "$(git ls-files '*.h' '*.cc' '*.cu' | wc -l) files are formatted"
}

job_lint() { ## clang-tidy over the sources that differ from main; `lint all` over all, `lint FILE...` over these
  install_packages "${LINT_PACKAGES[@]}"
  configure_and_build dev
  local files=("$@")
  case ${1:-} in
    '') mapfile -t files < <(git diff --name-only --diff-filter=d main -- '*.cc') ;;
    all) mapfile -t files < <(git ls-files 'engine/*.cc' 'fixtures/*.cc' 'suites/*.cc' 'tools/*.cc') ;;
  esac
  if [ ${#files[@]} -eq 0 ]; then
    echo "no source differs from main"
    return
  fi
  printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$JOBS" clang-tidy -p build/dev --quiet
}

job_quickstart() { ## install, build what it runs, boot the CPU engine, replay a workload, judge the run (ci/quickstart)
  say "install"
  install_packages "${BUILD_PACKAGES[@]}"
  say "build"
  configure_and_build cpu -- plumb plumb_suites plumbline_torch
  say "this machine"
  build/cpu/bin/plumb doctor
  say "measure this machine's cost tables, simulate a workload with them, replay it on the CPU engine, judge"
  build/cpu/bin/plumb_suites --benchmark_filter='^cpu/llama-29m/steady/' --output-dir=results
  say "judge a recorded vLLM run against the reference simulator"
  local recorded=results/recorded
  rm -rf "$recorded" && mkdir -p "$recorded"
  cp -R golden/RTX4090/Llama-3.1-8B/sharegpt-llama-3.1-8b-300-sps10/. "$recorded"
  build/cpu/bin/plumb validate --bench-dir "$recorded/run" --sim-csv "$recorded/sim/sim.csv" \
    --sim-log "$recorded/sim/sim.log" --tolerances "$recorded/example.json"
  say "both runs passed"
  # The simulations that it was compared with lie below it.
  echo "artifacts of the CPU run: $(find results/cpu -name meta.json -not -path '*/simulated-*' -printf '%T@ %h\n' | sort -n | tail -1 | cut -d' ' -f2)"
  echo "summary and plots of the recorded run: $recorded/run/validation"
}

job_coverage() { ## build with gcov, test, leave build/coverage/html/index.html and print the total
  install_packages "${COVERAGE_PACKAGES[@]}"
  use_recorded_examples
  configure_and_build coverage
  run_ctest coverage coverage -LE "$NOT_UNDER_SANITIZERS" "$@"
  mkdir -p build/coverage/html
  gcovr --root . --filter engine/ --filter fixtures/ --filter tools/ --exclude-throw-branches -j "$JOBS" \
    --html-details build/coverage/html/index.html --print-summary build/coverage
}

job_gpu() { ## build with the device probe and run the GPU suites; fails when no GPU test ran
  configure_and_build gpu -DPLUMBLINE_WARNINGS_AS_ERRORS=ON
  mkdir -p "$REPORTS"
  build/gpu/bin/plumb doctor --ctest-resources >"$REPORTS/ctest-resources.json"
  run_ctest gpu gpu -L '^gpu$' --resource-spec-file "$REPORTS/ctest-resources.json" "$@"
  # ctest is content when every test was skipped; a GPU machine on which nothing ran is broken.
  local passed
  passed=$(count_results "$REPORTS/gpu.xml" | cut -d' ' -f1)
  [ "$passed" -gt 0 ] || fail "no GPU test ran (see the reasons above)"
}

job_figures() { ## run the benchmarks that print the measured figures of README.md; arguments go to ctest
  use_recorded_examples
  configure_and_build cpu
  ctest --preset cpu -L '^bench$' --no-tests=error -j 1 -V "$@"
}

# count_results FILE: "passed failed skipped" of a JUnit file of ctest.
count_results() {
  awk '
    /<testcase / { if (match($0, /status="[a-z]*"/)) status[substr($0, RSTART + 8, RLENGTH - 9)]++ }
    END { print status["run"] + 0, status["fail"] + 0, status["notrun"] + status["disabled"] + 0 }' "$1"
}

# list_skipped FILE: "name: reason" of each skipped test. The reason is what the test printed: for GoogleTest the line
# after "Skipped"; for the device probe its reason; else the first line that speaks of skipping.
list_skipped() {
  awk '
    function finish() { if (skipped) print "  " name ": " (reason == "" ? "no reason printed" : reason) }
    /<testcase / {
      skipped = after = 0; reason = ""
      match($0, /name="[^"]*"/); name = substr($0, RSTART + 6, RLENGTH - 7)
      if (match($0, /status="(notrun|disabled)"/)) skipped = 1
    }
    skipped && reason == "" && after && NF { reason = $0 }
    skipped && /: Skipped$/ { after = 1; next }
    skipped && reason == "" && match($0, /"reason": ".*"/) { reason = substr($0, RSTART + 11, RLENGTH - 12) }
    skipped && reason == "" && !after && /[Ss]kip/ && !/<skipped|<testcase|\[  SKIPPED|\[ RUN/ {
      reason = $0; sub(/^[ \t]*(<system-out>)?/, "", reason); sub(/<\/system-out>.*/, "", reason)
    }
    /<\/testcase>/ { finish() }' "$1"
}

# The jobs of a pull request, in the order in which they tell most for their time. A job that fails does not keep the
# later ones from running, except that nothing goes on without a build.
job_all() { ## what ci/test runs: install, format, build, test, asan, fuzz, tsan; then a summary
  local job failed=() times=() start status
  rm -rf "$REPORTS"
  for job in install format build test asan fuzz tsan; do
    say "$job"
    start=$SECONDS
    status=0
    # A process of its own: `set -e` is off inside a function that is called as a condition.
    "$PWD/ci/do.sh" "$job" || status=$?
    times+=("$job $((SECONDS - start)) s")
    if [ $status -ne 0 ]; then
      failed+=("$job")
      case $job in install | build) break ;; esac
    fi
  done

  say "summary"
  printf '  %s\n' "${times[@]}"
  local report counts sum=(0 0 0) i skipped
  for report in "$REPORTS"/*.xml; do
    [ -e "$report" ] || continue
    read -r -a counts < <(count_results "$report")
    for i in 0 1 2; do sum[i]=$((sum[i] + counts[i])); done
    skipped=$(list_skipped "$report")
    [ -z "$skipped" ] || printf 'skipped in %s:\n%s\n' "$(basename "$report" .xml)" "$skipped"
  done
  [ ${#failed[@]} -eq 0 ] || printf 'failed jobs: %s\n' "${failed[*]}"
  # A job can fail without a failed test (a compile error, a badly formatted file): that counts as one failure too.
  if [ ${#failed[@]} -gt 0 ] && [ "${sum[1]}" -eq 0 ]; then sum[1]=${#failed[@]}; fi
  echo "${sum[0]} passed, ${sum[1]} failed, ${sum[2]} skipped"
  [ ${#failed[@]} -eq 0 ]
}

usage() {
  echo "usage: ci/do.sh JOB [ARGUMENT...]"
  echo "jobs:"
  sed -nE 's/^job_([a-z-]+)\(\) \{ ## (.*)$/\1\t\2/p' ci/do.sh | while IFS=$'\t' read -r name text; do
    printf '  %-12s %s\n' "$name" "$text"
  done
}

job=${1:-}
if [ -z "$job" ] || ! declare -F "job_$job" >/dev/null; then
  [ -z "$job" ] || echo "ci/do.sh: no job '$job'" >&2
  usage >&2
  exit 1
fi
shift
"job_$job" "$@"
[ "$job" = all ] || printf '%s: %d s\n' "$job" "$SECONDS"
