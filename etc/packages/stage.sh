#!/bin/bash
# stage.sh FOLDER: a copy of the source tree there, without anything that was built.
#
# In a clone these are the files that git knows, as they are now; in an unpacked tarball, which has nothing else in it but
# what was built there, all others.  `.release` says what it is a copy of: `commit` and `epoch`, its time.
set -euo pipefail
to=$1
cd "$(dirname "$0")/../.."
mkdir -p "$to"

if [ -f .release ]; then
        find . \( -path ./build -o -path ./var -o -name __pycache__ -o -name .pytest_cache -o -path './plugins/*.so' \) -prune -o \
                \( -type f -o -type l \) -print0
elif git rev-parse --git-dir > /dev/null 2>&1; then
        git ls-files -z | while IFS= read -r -d '' file; do if [ -e "$file" ]; then printf '%s\0' "$file"; fi; done
else
        echo "$0: this is neither a clone nor an unpacked tarball of make dist" >&2
        exit 1
fi | tar --null --no-recursion -T - -cf - | tar -C "$to" -xf -

[ -f .release ] || printf 'commit=%s\nepoch=%s\n' "$(git rev-parse HEAD)" "$(git log -1 --format=%ct)" > "$to/.release"
