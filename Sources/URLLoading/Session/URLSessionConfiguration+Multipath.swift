// SPDX-License-Identifier: Apache-2.0

extension URLSessionConfiguration {
    /// The purpose for which connections use multipath TCP.
    ///
    /// Raw values are Apple's.
    public enum MultipathServiceType: Int, Sendable {
        /// Multipath TCP is not used. The default.
        case none = 0
        /// Keeps connections alive when networks change.
        case handover = 1
        /// Minimizes latency.
        case interactive = 2
        /// Maximizes throughput.
        case aggregate = 3
    }
}
