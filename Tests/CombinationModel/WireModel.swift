// SPDX-License-Identifier: Apache-2.0

/// The result of a stream task or an FTP load, and what its server received.
package struct WireReport: Hashable, Sendable, CustomStringConvertible {
    package var outcome: Outcome
    /// Each user with the password; for a stream, the greeting.
    package var logins: [String]
    /// The logins that the server received in clear although TLS was required.
    package var leaks: [String] = []
    /// The label of the uploaded file; nil if it is not examined.
    package var stored: String?

    package init(outcome: Outcome, logins: [String], stored: String? = nil) {
        self.outcome = outcome
        self.logins = logins
        self.stored = stored
    }

    package func matches(_ seen: WireReport) -> Bool {
        outcome.matches(seen.outcome) && logins == seen.logins && leaks == seen.leaks && (stored == nil || stored == seen.stored)
    }

    package var description: String {
        "\(outcome); the server was told [\(logins.joined(separator: ", "))]"
            + (leaks.isEmpty ? "" : ", in clear [\(leaks.joined(separator: ", "))]") + (stored.map { ", and has '\($0)'" } ?? "")
    }
}

/// A simple model of a stream task or an FTP load; it allows exactly one outcome.
package enum WireModel {
    package static let label = "the file"
    package static let anonymous = "anonymous", right = "ada:secret", wrong = "ada:wrong", greeting = "hello"

    /// The expected report of a row.
    package static func report(of row: WireRow) -> WireReport {
        if row.command == .cancel || row.command == .invalidate, row.moment == .made { return failed(-999) }
        // The server has not sent anything. Without TLS, the client of a stream has already sent its greeting.
        if isCut(row, .greeting) { return failed(-999, row.kind == .stream && row.tls == .none ? [greeting] : []) }
        if row.tls != .none {
            let isHeld = row.trust == .delegateAccepts || row.trust == .delegateRefuses
            if isHeld, isCut(row, .challenge) { return failed(-999) }
            switch row.trust {
            case .untrusted, .pinnedWrong: return failed(Outcome.untrusted)
            case .delegateRefuses: return failed(-999)
            case .system, .sessionRoots, .delegateAccepts, .pinnedRight: break
            }
        }
        let (logins, isIn, isAsked) = logins(of: row)
        if isAsked, isCut(row, .challenge) { return failed(-999, [anonymous]) }
        guard isIn else { return failed(-1013, logins) }
        if isCut(row, .within) { return failed(-999, logins) }
        return ended(row, logins)
    }

    private static func isCut(_ row: WireRow, _ moment: WireMoment) -> Bool {
        row.moment == moment && (row.command == .cancel || row.command == .invalidate)
    }

    private static func failed(_ code: Int, _ logins: [String] = []) -> WireReport {
        WireReport(outcome: .failed(code), logins: logins)
    }

    /// The logins that the server receives, whether the last one is accepted, and whether the delegate gets a question that is
    /// held.
    private static func logins(of row: WireRow) -> (told: [String], isIn: Bool, isAsked: Bool) {
        if row.kind == .stream { return ([greeting], true, false) }
        switch row.login {
        case .none: return ([anonymous], true, false)
        case .url: return ([right], true, false)
        case .storage where row.session != .noCredentials: return ([right], true, false)
        // Without a credential the login fails.
        case .storage: return ([anonymous], false, false)
        case .delegateAnswer:
            // Only the first question is held; a question about the server's certificate comes before the one about the password.
            let isHeldBefore = row.trust == .delegateAccepts
            return ([anonymous, right], true, !isHeldBefore)
        case .wrong: return ([wrong], false, false)
        }
    }

    /// The effect of the connection's end.
    private static func ended(_ row: WireRow, _ logins: [String]) -> WireReport {
        let whole = WireReport(
            outcome: Outcome(body: row.kind == .ftpUpload ? "" : label), logins: logins,
            stored: row.kind == .ftpUpload ? label : nil)
        switch row.end {
        case .whole: return whole
        case .cutData:
            // Streams and listings have no known length.
            guard row.kind == .stream || row.kind == .ftpList else { return failed(-1005, logins) }
            return WireReport(
                outcome: Outcome(body: Body.label(of: Array(Body.bytes(label).prefix(Body.length / 2)))), logins: logins)
        case .noReply, .reset: return failed(-1005, logins)
        // For an upload, the server's ragged end does not matter.
        case .ragged: return row.kind == .ftpUpload ? whole : failed(-1005, logins)
        case .silence: return failed(-1001, logins)
        }
    }
}
