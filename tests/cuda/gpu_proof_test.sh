#!/usr/bin/env bash
# scripts/gpu-proof by itself: gpu_proof_test.sh BUILD SOURCE. The emulated plugin stands in the real one's place, and a program that
# sleeps among the tests: what is under test is that every run ends in time and leaves its table.
set -euo pipefail
build="$1" source="$2"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
fail() { printf 'gpu_proof_test: %s\n' "$*" >&2; exit 1; }

pack="$work/pack"
mkdir -p "$pack"/{bin,lib/tenon/plugins,libs,tests,bench,build,data}
ln -s "$build/bin/tenon" "$pack/bin/tenon.real"
# Started by its real path it would find the build's own plugins.
cat >"$pack/bin/tenon" <<TEXT
#!/bin/sh
TENON_PLUGIN_PATH='$build/tests/cuda' exec '$pack/bin/tenon.real' "\$@"
TEXT
printf '#!/bin/sh\nexec sleep 600\n' >"$pack/tests/cuda_sleep_test"
printf '#!/bin/sh\necho "error: on purpose"\nexit 7\n' >"$pack/tests/cuda_broken_test"
printf '#!/bin/sh\nexit 0\n' >"$pack/tests/cuda_well_test"
cp "$source/scripts/gpu-proof" "$pack/gpu-proof"
cp "$source/bench/cuda/compare_cuda.py" "$pack/bench/"
chmod +x "$pack"/bin/tenon "$pack"/tests/*

# proof STATUS ARGUMENTS…: runs it, with that exit status.
proof() {
  local expected="$1" status=0
  shift
  rm -rf "$work/out"
  "$pack/gpu-proof" --out "$work/out" "$@" >"$work/log" 2>&1 </dev/null || status=$?
  ((status == expected)) || { cat "$work/log" >&2; fail "exit status $status, not $expected: $*"; }
}
says() { grep -qE -- "$1" "$work/out/table.txt" || { cat "$work/out/table.txt" >&2; fail "table.txt has no '$1'"; }; }
is_complete() {
  [[ "$(cd "$work/out" && echo *)" == "results.tar.gz table.txt" ]] || fail "other files than two: $(ls "$work/out")"
  tar -tzf "$work/out/results.tar.gz" >/dev/null || fail "results.tar.gz is damaged"
  says '^[0-9]+ passed, [0-9]+ failed'
}

proof 2 --only devices,nosuch
grep -q "there is no part 'nosuch'; there are: devices matmul conv" "$work/log" || fail "a wrong part is not named"
proof 2 --programs nosuch
grep -q "there is no program 'nosuch'; there are: broken sleep well" "$work/log" || fail "a wrong program is not named"
proof 2 --tools nosuch
proof 2 --budget soon

proof 0 --only operators --programs well --budget 60
says '^pass  devices'
says '^pass  operators: well .* exit status 0$'
is_complete

proof 1 --only operators --programs broken,well --budget 60
says '^FAIL  operators: broken .* exit status 7: error: on purpose$'
says '^pass  operators: well'
is_complete

# The budget ends what runs; the rest is named.
start=$SECONDS
proof 4 --only operators --programs sleep,well --budget 5
((SECONDS - start <= 60)) || fail "a budget of 5 s took $((SECONDS - start)) s"
says '^left '
is_complete

# So does a signal.
rm -rf "$work/out"
"$pack/gpu-proof" --only operators --programs sleep --budget 300 --out "$work/out" >"$work/log" 2>&1 </dev/null &
proof=$!
for _ in $(seq 600); do
  if grep -q '^pass  devices' "$work/out/table.txt" 2>/dev/null; then break; fi
  sleep 0.1
done
sleep 1.1  # the table says when
kill -TERM "$proof"
status=0
wait "$proof" || status=$?
((status == 143)) || fail "exit status $status after a signal, not 143"
says '^FAIL  ended by SIGTERM +[1-9][0-9]* *$'
is_complete

# Benchmarks that cannot be run have no figures, and without a Python there is no yardstick; nothing is kept.
proof 1 --only bench --budget 30
! command -v python3 >/dev/null || says 'NO FIGURE$'
says '^FAIL  bench'
is_complete
proof 1 --only bench --budget 30 --python /no/such/python
says '^FAIL  bench .* no Python'
is_complete

# A pack that cannot be unpacked leaves nothing behind.
mkdir "$work/damaged" "$work/tmp"
cp "$source/scripts/gpu-proof" "$work/damaged/"
printf 'no archive' >"$work/damaged/pack.tar.gz"
status=0
TMPDIR="$work/tmp" "$work/damaged/gpu-proof" --out "$work/out" >"$work/log" 2>&1 </dev/null || status=$?
((status == 2)) || fail "exit status $status for a damaged pack, not 2"
[[ -z "$(ls "$work/tmp")" ]] || fail "a damaged pack leaves files behind"

printf 'gpu_proof_test: passed\n'
