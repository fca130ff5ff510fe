#!/usr/bin/env bash
# Train studies one after the other in the background, and commit every part and every sweep as soon as it is finished.
#
#   runs/queue.sh STUDY...        in a worktree of its own, at the commit that is to be recorded:
#                                 git worktree add -b queue ../queue && cd ../queue && runs/queue.sh intents-rates
#   pause for timings and tests:  pkill -STOP -f ipykernel_launcher; pkill -CONT likewise goes on
#
# One process a core, at a low priority. On another machine the same command goes on from the committed parts.
set -eu
cd "$(dirname "$0")/.."
export PYTHONPATH=$PWD

keep() {
  git add --all "runs/$1/published" runs/arms.csv runs/rows.csv 2> /dev/null || true
  find "runs/$1" -path '*/checkpoint/*' \( -name plan.json -o -name 'finished-*.json' -o -name '*.parquet' \) -print0 |
    xargs -0 --no-run-if-empty git add --force
  git ls-files --deleted -z "runs/$1" | xargs -0 --no-run-if-empty git rm --quiet --cached  # parts of finished sweeps
  git diff --cached --quiet || git commit --quiet --no-verify --message "$1: finished parts and sweeps"
}

for study in "$@"; do
  nice -n 3 fpt run "$study" --threads 1 &
  while kill -0 $! 2> /dev/null; do
    sleep 300
    fpt publish "$study" --partial > /dev/null 2>&1 || true  # nothing is finished yet
    keep "$study"
  done
  wait $!
  fpt publish "$study"
  keep "$study"
done
