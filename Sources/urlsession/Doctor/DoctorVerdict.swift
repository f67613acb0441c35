// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// Composes the final sentence: whether a load succeeds, and otherwise why it fails, and what may help.
struct DoctorVerdict {
    let url: URL
    let failure: ToolFailure?
    let outcome: DoctorLoad.Outcome
    let probes: [ConnectionProbe]

    private var host: String { url.host(percentEncoded: false) ?? "" }

    var sentence: String {
        guard let failure else { return success }
        let words = failure.message ?? "the load was stopped"
        return "The load fails (\(failure.code)): \(words). \(advice(failure))"
    }

    /// Whether the proxy accepted the connection, but refused to connect to the server.
    var isRefusedByProxy: Bool {
        failure?.code == 7 && probes.contains { $0.failure == nil } && failure?.message?.contains("the proxy ") == true
    }

    private var success: String {
        guard let response = outcome.response else { return "The load succeeds." }
        let end = response.url?.host(percentEncoded: false) ?? host
        let detour =
            outcome.redirects.isEmpty
            ? "" : ", after \(outcome.redirects.count) redirect\(outcome.redirects.count == 1 ? "" : "s")"
        switch response.statusCode {
        case 401: return "The server is reachable, but \(end) requires authentication (401): use --user."
        case 407: return "The proxy is reachable, but requires authentication (407): use --proxy-user."
        case 400...: return "The server is reachable; \(end) itself answers \(response.statusCode)\(detour)."
        default: return "The load succeeds: \(end) answers \(response.statusCode)\(detour)."
        }
    }

    private func advice(_ failure: ToolFailure) -> String {
        switch failure.code {
        case 1
        where failure.message?.contains("App Transport Security") == true
            || (outcome.error as? URLError)?.code == .appTransportSecurityRequiresSecureConnection:
            "Use https, or allow http to this host."
        case 5: "Check the proxy's name, and the setting that contains it."
        case 6: "Check the spelling of the name, and whether the name servers that \"urlsession network\" shows answer."
        case 7 where isRefusedByProxy:
            "The proxy is reachable, but refuses the connection: ask its administrator, or use another one with --proxy."
        case 7 where !probes.isEmpty && probes.allSatisfy { $0.failure?.contains("no answer") == true }:
            "No address answers: a firewall may drop the packets, or the machine is off."
        case 7: "Nothing accepts connections there: check the port, and whether the server is running."
        case 28
        where probes.contains { $0.failure == nil } && url.scheme?.lowercased() == "https" && outcome.certificates.isEmpty:
            "The server accepts the connection, but sends nothing: it may not use TLS on this port."
        case 28 where probes.contains { $0.failure == nil }:
            "The server accepts the connection, but sends nothing: it is slow, or stuck."
        case 28: "No address answers: a firewall may drop the packets, or the machine is off."
        case 35: "Check the port, and which TLS versions both sides allow."
        case 47: "The redirects lead in a circle, or never end: ask the server's administrator."
        case 52, 56, 18: "The server, or a device on the network path, closed the connection too early."
        case 58: "The server requires a client certificate that it trusts: use --cert."
        case 60: DoctorTrust.advice(outcome)
        case 67: "The user name or the password is wrong, or the server offers no allowed authentication method."
        case 90: "The server's key is not the pinned one: it was replaced, or the connection is intercepted."
        default: "See the step above for details."
        }
    }
}
