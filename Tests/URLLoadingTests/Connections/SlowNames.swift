// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit

/// A library to preload into a process: it resolves names below `test` to 127.0.0.1, and counts lookups.
///
/// The lookup of a name that contains `slow` waits until the gate opens, for at most a minute.
enum SlowNames {
    /// The environment variables that load the library.
    static func environment(_ library: PreloadedLibrary) -> [String: String] {
        library.environment.merging(["NSAllowsArbitraryLoads": "YES"]) { $1 }
    }

    /// The number of started lookups of IPv4 addresses for names that end with `suffix`.
    static func count(_ suffix: String) -> Int {
        typealias Function = @convention(c) (UnsafePointer<CChar>) -> CInt
        return PreloadedLibrary.function("names_count", as: Function.self).map { Int($0(suffix)) } ?? -1
    }

    /// Waits until `count` lookups of either family have started; returns false after half a minute.
    static func wait(for count: Int, _ suffix: String) -> Bool {
        typealias Function = @convention(c) (UnsafePointer<CChar>, CInt) -> CInt
        return PreloadedLibrary.function("names_wait", as: Function.self).map { $0(suffix, CInt(count)) == 1 } ?? false
    }

    static func openGate() {
        typealias Function = @convention(c) () -> Void
        PreloadedLibrary.function("names_open", as: Function.self)?()
    }

    static let source = #"""
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <netdb.h>
        #include <pthread.h>
        #include <string.h>
        #include <sys/socket.h>
        #include <time.h>

        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
        static struct { char name[64]; int is_v6; } asked[8192];
        static int asked_count, is_open;

        static int ends(const char *name, const char *suffix) {
            size_t length = strlen(name), tail = strlen(suffix);
            return length >= tail && strcmp(name + length - tail, suffix) == 0;
        }
        static int counted(const char *suffix, int with_v6) {
            int count = 0;
            for (int i = 0; i < asked_count; i++) count += (with_v6 || !asked[i].is_v6) && ends(asked[i].name, suffix);
            return count;
        }
        static void deadline(struct timespec *time, int seconds) {
            clock_gettime(CLOCK_REALTIME, time);
            time->tv_sec += seconds;
        }

        int names_count(const char *suffix) {
            pthread_mutex_lock(&lock);
            int count = counted(suffix, 0);
            pthread_mutex_unlock(&lock);
            return count;
        }
        int names_wait(const char *suffix, int count) {
            struct timespec time;
            deadline(&time, 30);
            pthread_mutex_lock(&lock);
            while (counted(suffix, 1) < count && pthread_cond_timedwait(&changed, &lock, &time) == 0) {}
            int came = counted(suffix, 1) >= count;
            pthread_mutex_unlock(&lock);
            return came;
        }
        void names_open(void) {
            pthread_mutex_lock(&lock);
            is_open = 1;
            pthread_cond_broadcast(&changed);
            pthread_mutex_unlock(&lock);
        }

        int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result) {
            static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
            if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
            if (node == NULL || !ends(node, ".test")) return real(node, service, hints, result);
            int is_v6 = hints != NULL && hints->ai_family == AF_INET6, waits = strstr(node, "slow") != NULL;
            struct timespec time;
            deadline(&time, 60);
            pthread_mutex_lock(&lock);
            if (asked_count < 8192) {
                strncpy(asked[asked_count].name, node, 63);
                asked[asked_count++].is_v6 = is_v6;
            }
            pthread_cond_broadcast(&changed);
            while (waits && !is_open && pthread_cond_timedwait(&changed, &lock, &time) == 0) {}
            pthread_mutex_unlock(&lock);
            if (is_v6) return EAI_NONAME;
            return real("127.0.0.1", service, hints, result);
        }
        """#
}
