// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules
import URLLoading

/// The step of the doctor about the version of HTTP, and why it is not HTTP/3.
enum DoctorProtocol {
    static func step(_ outcome: DoctorLoad.Outcome) -> DoctorReport.Step {
        let last = outcome.metrics?.transactionMetrics.last { $0.networkProtocolName != nil }
        let offer = outcome.response?.value(forHTTPHeaderField: "Alt-Svc")
        guard let last, let name = last.networkProtocolName else {
            let reasons = reasons(outcome, last)
            return .init(.httpVersion, .none, ["none was used"] + reasons, ["http3": reasons])
        }
        let words = ["http/1.1": "HTTP/1.1", "http/1.0": "HTTP/1.0", "h2": "HTTP/2", "h3": "HTTP/3"][name] ?? name
        var lines = [words]
        var facts = ["protocol": [name], "alternatives": [offer].compactMap { $0 }]
        if name == "h3" {
            if let library = outcome.http3?.library { lines.append("by \(library)") }
            facts["library"] = [outcome.http3?.library].compactMap { $0 }
        } else {
            let reasons = reasons(outcome, last)
            lines += reasons
            facts["http3"] = reasons
        }
        if let offer { lines.append("the server is also reachable by \(offer) (Alt-Svc)") }
        return .init(.httpVersion, .good, lines, facts)
    }

    /// Returns the reasons why HTTP/3 was not used, as sentences.
    private static func reasons(
        _ outcome: DoctorLoad.Outcome, _ last: URLSessionTaskTransactionMetrics?
    ) -> [String] {
        guard let standing = outcome.http3 else { return [] }
        func not(_ obstacle: HTTP3Obstacle) -> [String] { ["not HTTP/3: \(obstacle)"] }
        if (last?.request.url ?? outcome.response?.url)?.scheme?.lowercased() == "http" { return not(.cleartext) }
        if last?.isProxyConnection == true { return not(.proxy) }
        if let obstacle = standing.obstacle { return not(obstacle) }
        guard let endpoint = standing.choice.endpoints.first else { return standing.choice.obstacles.flatMap(not) }
        let place = "\(endpoint.host), port \(endpoint.port)"
        switch endpoint.source {
        case .alternativeService:
            return ["not HTTP/3, because this response is the first to announce it, for \(place); later connections may use it"]
        case .assumption, .httpsRecord: return ["not HTTP/3: the connection over TCP was ready before that to \(place) over QUIC"]
        }
    }
}
