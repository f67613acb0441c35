// SPDX-License-Identifier: Apache-2.0

import LoadingTestKit

/// A preloaded library with which a test advances the clock of its process's event loops.
enum TestClock {
    /// Advances the clock, and makes every event loop check its timers.
    static func leap(_ seconds: Int) async throws {
        typealias Leap = @convention(c) (Int) -> Void
        try await BlockedLoops.during { PreloadedLibrary.function("test_clock_leap", as: Leap.self)?(seconds) }
    }

    static let source = #"""
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <stdatomic.h>
        #include <sys/timerfd.h>
        #include <time.h>

        static _Atomic long ahead;
        static _Atomic char is_timer[4096];
        static int (*real_gettime)(clockid_t, struct timespec *);
        static int (*real_settime)(int, int, const struct itimerspec *, struct itimerspec *);
        static void __attribute__((constructor)) find(void) {
            *(void **)&real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
            *(void **)&real_settime = dlsym(RTLD_NEXT, "timerfd_settime");
        }

        int clock_gettime(clockid_t clock, struct timespec *time) {
            if (real_gettime == NULL) find();
            int result = real_gettime(clock, time);
            if (result == 0 && clock == CLOCK_MONOTONIC) time->tv_sec += atomic_load(&ahead);
            return result;
        }
        int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old) {
            if (fd >= 0 && fd < 4096) is_timer[fd] = 1;
            return real_settime(fd, flags, new, old);
        }
        // A loop does not rearm its timer for a deadline later than the one it is set for.
        void test_clock_leap(long seconds) {
            struct itimerspec now = {.it_value.tv_nsec = 1};
            atomic_fetch_add(&ahead, seconds);
            for (int fd = 0; fd < 4096; fd++) if (is_timer[fd]) real_settime(fd, 0, &now, NULL);
        }
        """#
}
