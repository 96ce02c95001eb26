#!/bin/bash
# Runs the model of the lease, and once more without each of its checks: the first must hold, the others must fail.
#
#     tests/model/run.sh FOLDER        what spin makes goes there
set -eu

model=$(realpath "$(dirname "$0")/lease.pml")
folder=$1
failed=0

# What is removed → faults that it takes to notice, tasks to do.  Within the fence epoch and nonce stand in for each
# other, since acquire gives no epoch to two nonces: they are removed together (HOLDER), and the nonce everywhere (NONCE).
without=(NONCE:2:2 HOLDER:2:2 CALL:2:2 JUMP:2:2 STALE:2:2 BUSY:2:2 DEADLINE:2:2 SENT:2:2 REPEAT:2:2 MERGE:2:2 GONE:2:2
         GAP:2:2 BUSY_KEY:2:2 DRAIN:2:2 PARTING:3:1)

# check NAME OPTIMIZE DEFINES...: true if the model holds; false if an assertion does not; ends the run otherwise.
check() {
        local at="$folder/$1" optimize=$2
        shift 2
        rm -rf "$at"
        mkdir -p "$at"
        (cd "$at" && spin -a "$@" "$model" && gcc "$optimize" -w -DSAFETY -DHC4 -DMEMLIM=2000 -o pan pan.c &&
                ./pan -m100000) > "$at/log" 2>&1 || true
        if grep -q 'assertion violated' "$at/log"; then
                return 1
        fi
        if ! grep -q 'errors: 0' "$at/log" || grep -q 'search not completed\|max search depth too small' "$at/log"; then
                echo "tests/model: spin could not search it all; see $at/log" >&2
                exit 1
        fi
}

states() {
        sed -n 's/^ *\([0-9]*\) states, stored.*/\1 states/p' "$folder/$1/log"
}

for sizes in 2:2 3:1; do
        name="whole-$sizes"
        if check "$name" -O2 "-DFAULTS=${sizes%:*}" "-DTO_DO=${sizes#*:}"; then
                echo "holds: ${sizes%:*} faults, ${sizes#*:} to do, $(states "$name")"
        else
                echo "FAILS: $(grep 'assertion violated' "$folder/$name/log"); replay with spin -t in $folder/$name"
                failed=1
        fi
done

for entry in "${without[@]}"; do
        IFS=: read -r what faults to_do <<< "$entry"
        if check "without-$what" -O0 "-DFAULTS=$faults" "-DTO_DO=$to_do" "-DWITHOUT_$what"; then
                echo "HOLDS without $what: the model does not notice"
                failed=1
        else
                echo "fails without $what, as it should"
        fi
done
exit $failed
