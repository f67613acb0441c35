//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import HTTPTransport
import LoadingModel
import LoadingStores

/// Responses that one session alone may be answered with, in memory: see ``ResponseTrust``.
///
/// Confined to the session's loop.
final class OwnResponses {
    /// Which of a session's loads accept a connection.
    struct Circle: Hashable {
        enum Voucher: Hashable {
            case roots
            /// The app alone: the task's own delegate, or nil for the session's delegate.
            case app(ConnectionHolder?)
        }

        var voucher: Voucher
        /// The fingerprint of the certificate that was shown.
        var clientCertificate: Data?
    }

    /// An app may make a delegate for each task.
    private static let maximumParts = 4

    private let whole: ResponseCache
    /// The one used last comes last.
    private var parts: [(circle: Circle, responses: ResponseCache)] = []

    init(partOf whole: ResponseCache) { self.whole = whole }

    /// The part for a circle, which counts as used.
    ///
    /// - Parameters:
    ///   - circle: Whose loads it is for.
    ///   - making: Whether a missing one is made.
    /// - Returns: The part; nil if it is missing and not made.
    func part(for circle: Circle, making: Bool) -> ResponseCache? {
        if let index = parts.firstIndex(where: { $0.circle == circle }) {
            let part = parts.remove(at: index)
            // Other sessions have made too many since.
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

    /// Notes that a part answered a load.
    func use(_ responses: ResponseCache) {
        guard let index = parts.lastIndex(where: { $0.responses === responses }), index != parts.count - 1 else { return }
        parts.append(parts.remove(at: index))
    }

    /// The parts that a load may be answered from.
    ///
    /// - Parameters:
    ///   - judge: The load's own judge of servers, if it has one.
    ///   - identity: The one that its connection would show.
    /// - Returns: Those that it may, the one used last first.
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

    /// What is kept for everyone takes the place of all that is kept here under its key.
    func remove(key: String) {
        for part in parts { part.responses.remove(key: key) }
    }

    func removeAll() { parts = [] }
}
