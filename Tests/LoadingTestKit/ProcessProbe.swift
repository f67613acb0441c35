// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Measures this process: file descriptors, threads and memory.
package enum ProcessProbe {
    /// The number of open file descriptors.
    package static func openDescriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }

    /// The number of threads.
    package static func threads() throws -> Int { try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count }

    /// Resident memory in bytes.
    package static func residentBytes() throws -> Int {
        let fields = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
        guard fields.count > 1, let pages = Int(fields[1]) else { throw CocoaError(.fileReadCorruptFile) }
        return pages * sysconf(Int32(_SC_PAGESIZE))
    }
}
