// SPDX-License-Identifier: Apache-2.0

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

// The result of a call; the negative errno if the call failed.
static inline int64_t checked(int64_t result) {
    return result < 0 ? -errno : result;
}

// The checked result of a call that is repeated while signals interrupt it.
#define RETRIED(call) ({ int64_t made; do { made = (call); } while (made < 0 && errno == EINTR); checked(made); })

// Closes a descriptor after another call failed. Returns the negative errno of that call.
static inline int close_failed(int fd) {
    int error = errno;
    close(fd);
    return -error;
}
