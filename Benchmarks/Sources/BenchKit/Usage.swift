// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The resources that this process has used so far.
package enum Usage {
    /// The user and system time of all threads, in seconds.
    package static var cpu: Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    /// The time of the monotonic clock, in seconds.
    package static var now: Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// The current resident memory in KiB (`VmRSS`); `peakResident` is the maximum so far (`VmHWM`).
    package static var resident: Int { status("VmRSS:") }
    package static var peakResident: Int { status("VmHWM:") }

    private static func status(_ key: String) -> Int {
        guard let file = fopen("/proc/self/status", "r") else { return 0 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        while fgets(&line, 256, file) != nil {
            let text = line.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
            if text.hasPrefix(key) { return Int(String(text.filter(\.isNumber))) ?? 0 }
        }
        return 0
    }

    /// Raises the limit of file descriptors to the hard limit.
    package static func raiseDescriptorLimit() {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
