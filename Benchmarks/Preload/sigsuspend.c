// SPDX-License-Identifier: Apache-2.0

// Lets valgrind run Swift's main thread: it writes into the mask of sigsuspend, which is read-only memory in libdispatch. A preloaded
// library for Benchmarks/instructions.

#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

int sigsuspend(const sigset_t *mask) {
    sigset_t copy = *mask;
    return (int)syscall(SYS_rt_sigsuspend, &copy, 8);
}
