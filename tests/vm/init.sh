#!/bin/sh
# The guest's first program: runs the commands that come by the second serial port, and
# answers each with a line "status bytes" and its output. Started by tests/vm/guest.py.
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t debugfs debugfs /sys/kernel/debug
dmesg -n 8
export LD_LIBRARY_PATH=/lib

serve() {
	stty raw -echo
	echo ready
	while read -r line; do
		(eval "$line") >/tmp/.answer 2>&1 </dev/null
		status=$?
		echo "$status $(wc -c </tmp/.answer)"
		cat /tmp/.answer
	done
}

# Not in this process: it is told of the end of every orphan, and a signal makes busybox's
# read begin anew and forget what it has read of the line.
serve </dev/ttyS1 >/dev/ttyS1 &
while :; do
	wait
	sleep 1
done
