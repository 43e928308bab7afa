#!/usr/bin/env bash
# The pages of this program in a browser, and the chart bundle made again: run.sh SINEW FOLDER SEED_TRACE
# Exits 77 (skipped) with the reason where there is no browser, no npm, or no way to its packages.
set -euo pipefail
source=$(cd -- "$(dirname -- "$0")/../.." && pwd)
sinew=$1 work=$2 seed_trace=$3
skip() { echo "skipped: $1" && exit 77; }
[[ -x /usr/bin/chromium ]] || skip "no chromium (apt install chromium)"
command -v npm >/dev/null || skip "no npm (apt install npm)"
mkdir -p "$work"
cp "$source"/web/{package.json,package-lock.json,charts.mjs,build.mjs} "$work"
(cd "$work" && npm ci --no-audit --no-fund >npm.log 2>&1) || skip "npm cannot fetch its packages: $(tail -1 "$work/npm.log")"

(cd "$work" && npm run build >build.log 2>&1)
for file in charts.min.js LICENSES.txt; do
  cmp "$work/$file" "$source/web/$file" || { echo "web/$file is not what web/ makes: run npm ci && npm run build there" && exit 1; }
done

profiles=$source/tests/data/profiles
"$sinew" import "$profiles/mpitrace_training_cpu.txt" --format html >"$work/training.html"
"$sinew" import "$profiles/mpip_training.txt" --format html >"$work/mpip.html"
"$sinew" draw allreduce --algo ring -p 4 --format html >"$work/ring.html"
rm -rf "$work/seeds" && "$seed_trace" "$work/seeds"
"$sinew" report "$work/seeds" --link 25GB/s --net alpha=5us,bw=25GB/s --format html >"$work/seeds.html"
# The same traces as those of a training run, on more workers of a network with bounds.
rm -rf "$work/run" && cp -r "$work/seeds" "$work/run"
cat >"$work/run/run.json" <<'END'
{"model": "mlp", "data": "fashion", "workers": 2, "batch": 64, "compression": {"scheme": "dense", "stages": []}}
END
echo '{"steps": 100, "parameters": 1000000, "buckets": 3}' >"$work/run/result.json"
for rank in 0 1; do
  for step in {0..9}; do
    echo "{\"step\": $step, \"total_ns\": 9500000, \"compute_ns\": $((6000000 + 400000 * rank)), \"update_ns\": 500000, \"exposed_ns\": 1900000, \"hidden_ns\": 400000, \"bytes_sent\": 4000000}"
  done >"$work/run/metrics-rank-$rank.jsonl"
done
cat >"$work/net.toml" <<'END'
format = "sinew-net"
version = 1
[link]
one_way = [ { alpha_us = 20, gbytes_per_s = 2 } ]
[error]
low_factor = 0.75
high_factor = 1.5
END
"$sinew" report "$work/run" --net "$work/net.toml" --format html >"$work/workers.html"
# A long name without a place to break it must not widen the page.
again=$work/seeds_once_more_with_every_rank_on_one_host_and_a_name_that_does_not_end
rm -rf "$again" && cp -r "$work/seeds" "$again"
"$sinew" report "$work/seeds" "$again" --format html >"$work/two.html"
node "$source/tests/web/pages.mjs" "$work" "$work"/{training,mpip,ring,seeds,workers,two}.html
