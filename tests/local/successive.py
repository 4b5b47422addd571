"""Programs of one VM, one after another: each finds what the one before it had."""
import os
import time

from harness import Failure, backend, expect, expect_verified, finish, main, wait_until

TAKE = "tests/local/take"
RUNS = int(os.environ.get("FAIRGV_TEST_RUNS", "60"))
QUOTA = 1 << 30
MOST = QUOTA * 6 // 10


def in_turn(settings, *arguments):
    with backend({"vm1": settings}, warm=2) as daemon:
        for i in range(RUNS):
            expect_verified(daemon.start("vm1", TAKE, *arguments), f"program {i + 1}")


def memory_comes_back():
    """More than half of the quota each: no two have room at once."""
    in_turn('memory = "1G";', MOST)


def sessions_come_back():
    in_turn("sessions = 1;", 4096)


main(memory_comes_back, sessions_come_back)
