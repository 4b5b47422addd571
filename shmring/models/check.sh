#!/bin/sh
# Checks each Spin model in this folder and in backend/models, and that each of its broken variants
# (every BROKEN_ name in it) fails. Needs spin and a C compiler; exit 77: no spin.
SPIN=${SPIN:-spin}
CC=${CC:-cc}

command -v "$SPIN" >/dev/null 2>&1 || {
	echo "skipped: spin is not installed (package spin)"
	exit 77
}
top=$(cd "$(dirname "$0")/../.." && pwd) || exit 99
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 99
failed=0

# search PATH [VARIANT]: the number of errors, or nothing if it could not be found out
search()
{
	rm -f pan pan.*
	"$SPIN" ${2:+-D"$2"} -a "$1" >spin.out 2>&1 &&
		$CC -O1 -w -DSAFETY -DMEMLIM=2000 -o pan pan.c >cc.out 2>&1 ||
		{ cat spin.out cc.out >&2; return; }
	./pan -m200000 >pan.out 2>&1
	if grep -q -e 'search depth too small' -e 'out of memory' -e 'memory limit' pan.out; then
		cat pan.out >&2
		return
	fi
	sed -n 's/^State-vector.*errors: \([0-9]*\)$/\1/p' pan.out
}

verdict()
{
	printf '%s: %s\n' "$1" "$2"
	[ "$1" = ok ] || failed=1
}

for path in "$top"/shmring/models/*.pml "$top"/backend/models/*.pml; do
	model=$(basename "$path")
	errors=$(search "$path")
	states=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' pan.out)
	if [ "$errors" = 0 ]; then
		verdict ok "$model holds in all $states states"
	else
		cat pan.out
		verdict FAILED "$model: ${errors:-unknown} errors"
	fi
	variants=$(grep -o 'BROKEN_[A-Z_]*' "$path" | sort -u)
	[ -n "$variants" ] || verdict FAILED "$model has no broken variant"
	for variant in $variants; do
		errors=$(search "$path" "$variant")
		if [ "${errors:-0}" -gt 0 ]; then
			verdict ok "$model with $variant fails, as it must"
		else
			verdict FAILED "$model with $variant: ${errors:-unknown} errors"
		fi
	done
done
exit $failed
