//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials
package import LoadingModel

/// The certificates of a connection's server, and the delegates that have accepted them for this connection.
///
/// A delegate is represented by the holder of its tasks' connections; nil stands for the session's delegate. Confined to the
/// connection's event loop.
package final class KeptChain {
    /// The number of tasks' own delegates whose acceptance is remembered, because a connection may outlive any number of them.
    private static let memory = 16

    /// The server's own certificate first, in DER; with the issuers that were fetched because the server did not send them.
    package let certificates: [Data]
    package let reach: AddressKind
    /// Whether the connection may serve tasks of all delegates: trusted roots vouch for the server, the server has not asked for a
    /// client certificate, and the connection is not authenticated (NTLM, Negotiate).
    package let isForAllDelegates: Bool

    private var acceptedBySession = false
    private var accepted: [ConnectionHolder] = []
    /// The delegates that are being asked, with the loads that wait for the verdict of the same delegate.
    private var waiting: [ConnectionHolder?: [LoadControl]] = [:]

    init(_ certificates: [Data], reach: AddressKind, isForAllDelegates: Bool, acceptedBy delegates: [ConnectionHolder?]) {
        self.certificates = certificates
        self.reach = reach
        self.isForAllDelegates = isForAllDelegates
        for delegate in delegates { accept(delegate) }
    }

    package func isAccepted(by delegate: ConnectionHolder?) -> Bool {
        delegate.map { accepted.contains($0) } ?? acceptedBySession
    }

    package func accept(_ delegate: ConnectionHolder?) {
        guard let delegate else {
            acceptedBySession = true
            return
        }
        guard !accepted.contains(delegate) else { return }
        if accepted.count >= Self.memory { accepted.removeFirst() }
        accepted.append(delegate)
    }

    /// Begins a question to a delegate; returns false if the delegate is being asked for another load, and the load has to wait.
    package func beginQuestion(to delegate: ConnectionHolder?, for load: LoadControl) -> Bool {
        guard let others = waiting[delegate] else {
            waiting[delegate] = []
            return true
        }
        if !others.contains(where: { $0 === load }) { waiting[delegate]?.append(load) }
        return false
    }

    /// Ends a question, whether it was answered or not; the loads that wait look at the outcome, or ask themselves.
    package func endQuestion(to delegate: ConnectionHolder?) {
        for load in waiting.removeValue(forKey: delegate) ?? [] { load.wake() }
    }
}

extension TrustAnswer {
    /// The error for a server that the app refused; nil if the answer is no refusal.
    package func refusal(of host: String) -> LoadError? {
        switch self {
        case .trusted, .checked: nil
        case .rejected: LoadError(.serverCertificateUntrusted, "the certificate of \(host) was rejected by the app")
        case .cancelled: LoadError(.cancelled, "the challenge about the certificate of \(host) was cancelled")
        }
    }
}
