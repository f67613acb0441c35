// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPTransport
import LoadingModel
import LoadingStores

/// Responses in memory that only one session may use: see ``ResponseTrust``.
///
/// Confined to the session's loop.
final class OwnResponses {
    /// The loads of a session that accept the same connections.
    struct Circle: Hashable {
        enum Voucher: Hashable {
            case roots
            /// Only the app trusts the server: the task's own delegate, or nil for the session's.
            case app(ConnectionHolder?)
        }

        var voucher: Voucher
        /// The fingerprint of the client certificate that was presented.
        var clientCertificate: Data?
    }

    /// The maximum number of parts; limited, because an app that creates a delegate for each task would need a part for each
    /// task.
    private static let maximumParts = 4

    private let whole: ResponseCache
    /// The parts in the order of their last use; the most recently used part is the last.
    private var parts: [(circle: Circle, responses: ResponseCache)] = []

    init(partOf whole: ResponseCache) { self.whole = whole }

    /// Returns the part for a circle, and marks it as used.
    ///
    /// - Parameters:
    ///   - circle: The loads that may use the part.
    ///   - making: Whether to create a missing part.
    /// - Returns: The part; nil if it is missing and not created.
    func part(for circle: Circle, making: Bool) -> ResponseCache? {
        if let index = parts.firstIndex(where: { $0.circle == circle }) {
            let part = parts.remove(at: index)
            // The part is retired if other sessions have created too many parts since its last use.
            if !part.responses.isRetired {
                parts.append(part)
                return part.responses
            }
        }
        guard making else { return nil }
        if parts.count >= Self.maximumParts { parts.removeFirst() }
        let responses = whole.makePart()
        parts.append((circle, responses))
        return responses
    }

    /// Marks a part as used.
    func use(_ responses: ResponseCache) {
        guard let index = parts.lastIndex(where: { $0.responses === responses }), index != parts.count - 1 else { return }
        parts.append(parts.remove(at: index))
    }

    /// Returns the parts that may contain a response for a load.
    ///
    /// - Parameters:
    ///   - judge: The task's own delegate if it decides which servers to trust, otherwise nil.
    ///   - identity: The identity that the load's connection would present.
    /// - Returns: The parts, most recently used first.
    func parts(admitting judge: ConnectionHolder?, _ identity: ClientIdentity?) -> [ResponseCache] {
        parts.reversed().filter { circle, _ in
            circle.clientCertificate == nil || circle.clientCertificate == identity?.fingerprint
        }.filter { circle, _ in
            switch circle.voucher {
            case .roots: true
            case .app(let other): other == judge
            }
        }.map(\.responses)
    }

    /// Removes all responses with a key, because one in the shared cache replaces them.
    func remove(key: String) {
        for part in parts { part.responses.remove(key: key) }
    }

    func removeAll() { parts = [] }
}
