/*
 * The process that keeps MPS for the daemon: the daemon's own program, started again under
 * the name FGV_MPS_KEEPER. Its children are nvidia-cuda-mps-control and, as it adopts what
 * that leaves behind, every MPS server. It has a session of its own, so that a ^C reaches
 * the daemon and not MPS, which the daemon takes down last.
 *
 * The channel to it is a SOCK_SEQPACKET socket. It sends struct fgv_mps_message; the daemon
 * sends nothing, and its end of the channel is the order to end.
 */
#ifndef FGV_BACKEND_MPS_KEEPER_H
#define FGV_BACKEND_MPS_KEEPER_H

#include <stdbool.h>

#define FGV_MPS_KEEPER	  "fairgv-mps"
#define FGV_MPS_KEEPER_FD 3
#define FGV_MPS_PROGRAM	  "nvidia-cuda-mps-control"
#define FGV_MPS_PIPES	  "pipe" /* in its folder */
#define FGV_MPS_LOGS	  "log"
/* The longest name of a socket in FGV_MPS_PIPES. */
#define FGV_MPS_SOCKET_MAX "control_privileged"

/* Behind its name. */
enum fgv_mps_keeper_argument {
	FGV_MPS_KEEPER_FOLDER = 1,
	FGV_MPS_KEEPER_DEVICES,	 /* CUDA_VISIBLE_DEVICES of MPS */
	FGV_MPS_KEEPER_READY_MS, /* the time that MPS has to get ready */
	FGV_MPS_KEEPER_ARGUMENTS
};

enum fgv_mps_news {
	FGV_MPS_READY,
	FGV_MPS_DOWN,	/* and will be started again */
	FGV_MPS_FAILED, /* could not be started in the first place: text says why */
};

struct fgv_mps_message {
	enum fgv_mps_news news;
	char text[508];
};

/* Whether this process was started as the keeper; then main() is fgv_mps_keeper_run(). */
bool fgv_mps_keeper_asked(int argc, char **argv);
int fgv_mps_keeper_run(char **argv);

#endif
