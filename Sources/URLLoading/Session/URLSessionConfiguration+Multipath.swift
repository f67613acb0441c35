//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

extension URLSessionConfiguration {
    /// What multipath TCP is used for.
    ///
    /// Raw values are Apple's.
    public enum MultipathServiceType: Int, Sendable {
        /// Not at all. The default.
        case none = 0
        /// To keep connections when networks change.
        case handover = 1
        /// For the lowest latency.
        case interactive = 2
        /// For the highest throughput.
        case aggregate = 3
    }
}
