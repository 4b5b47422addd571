#!/bin/sh
# Plays nvidia-cuda-mps-control for test_mps.c. In the folder $FAKE_MPS the file "mode" says
# what goes wrong, and it notes there what it was started with and which processes it made:
#
#   good     nothing
#   broken   the control daemon says so and ends
#   mute     it runs, and answers nothing
#   barren   it answers, but no server comes up
#   deaf     it, and its server, do not end when told to, nor on SIGTERM
#
# The control daemon reads from a pipe what the commands write to it.
mode=$(cat "$FAKE_MPS/mode")
pipe=$CUDA_MPS_PIPE_DIRECTORY

start_server() {
	# A server need not be in anybody's session or process group.
	[ "$mode" = deaf ] && trap '' TERM
	setsid sleep 1000 >/dev/null 2>&1 &
	echo $! >>"$FAKE_MPS/servers"
	echo $! >"$pipe/server"
}

serve() {
	env >"$FAKE_MPS/environment"
	echo $$ >>"$FAKE_MPS/controls"
	case $mode in
	broken)
		echo "Starting"
		echo "there is no GPU in here"
		exit 3
		;;
	mute) exec sleep 1000 ;;
	deaf) trap '' TERM ;;
	esac
	mkfifo "$pipe/control"
	while :; do
		read -r command argument uid <"$pipe/control"
		case $command in
		start_server)
			echo "$argument $uid" >>"$FAKE_MPS/started"
			[ "$mode" = barren ] || start_server
			;;
		quit)
			kill "$(cat "$pipe/server")"
			echo >>"$FAKE_MPS/quit"
			exit 0
			;;
		esac
	done
}

# The first look at a server finds it at work on its start.
server_status() {
	if [ -e "$pipe/looked" ]; then
		echo ACTIVE | tee -a "$FAKE_MPS/status"
	else
		: >"$pipe/looked"
		echo INITIALIZING
	fi
}

[ "$1" = -f ] && serve
read -r line
if ! [ -p "$pipe/control" ]; then
	echo "Cannot find MPS control daemon process"
	exit 1
fi
case $line in
get_server_list) cat "$pipe/server" 2>/dev/null || : ;;
get_server_status*) server_status ;;
quit) [ "$mode" = deaf ] || echo quit >"$pipe/control" ;;
*) echo "$line" >"$pipe/control" ;;
esac
