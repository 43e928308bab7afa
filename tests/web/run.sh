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
# A long name without a place to break it must not widen the page.
again=$work/seeds_once_more_with_every_rank_on_one_host_and_a_name_that_does_not_end
rm -rf "$again" && cp -r "$work/seeds" "$again"
"$sinew" report "$work/seeds" "$again" --format html >"$work/two.html"
node "$source/tests/web/pages.mjs" "$work" "$work"/{training,mpip,ring,seeds,two}.html
