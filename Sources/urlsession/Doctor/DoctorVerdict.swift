//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import URLLoading

/// The final sentence: whether a load succeeds, and otherwise why not, and what may help.
struct DoctorVerdict {
    let url: URL
    let failure: ToolFailure?
    let outcome: DoctorLoad.Outcome
    let probes: [ConnectionProbe]

    private var host: String { url.host(percentEncoded: false) ?? "" }

    var sentence: String {
        guard let failure else { return success }
        let words = failure.message ?? "it was stopped"
        return "The load fails (\(failure.code)): \(words). \(advice(failure))"
    }

    /// Whether the proxy accepted the connection, but refused to connect to the server.
    var isRefusedByProxy: Bool {
        failure?.code == 7 && probes.contains { $0.failure == nil } && failure?.message?.contains("the proxy ") == true
    }

    private var success: String {
        guard let response = outcome.response else { return "The load goes well." }
        let end = response.url?.host(percentEncoded: false) ?? host
        let detour =
            outcome.redirects.isEmpty
            ? "" : ", after \(outcome.redirects.count) redirect\(outcome.redirects.count == 1 ? "" : "s")"
        switch response.statusCode {
        case 401: return "The way to the server is good; \(end) wants to know who asks (401): say it with --user."
        case 407: return "The way to the proxy is good; it wants to know who asks (407): say it with --proxy-user."
        case 400...: return "The way to the server is good; \(end) itself answers \(response.statusCode)\(detour)."
        default: return "The load goes well: \(end) answers \(response.statusCode)\(detour)."
        }
    }

    private func advice(_ failure: ToolFailure) -> String {
        switch failure.code {
        case 1
        where failure.message?.contains("App Transport Security") == true
            || (outcome.error as? URLError)?.code == .appTransportSecurityRequiresSecureConnection:
            "Use https, or allow http to this host."
        case 5: "Check the proxy's name, or the setting that names it."
        case 6: "Check the spelling of the name, and whether the name servers of \"urlsession network\" answer."
        case 7 where isRefusedByProxy:
            "The proxy is there and does not let it through: ask its owner, or take another way by --proxy."
        case 7 where !probes.isEmpty && probes.allSatisfy { $0.failure?.contains("no answer") == true }:
            "No address answers: a firewall may drop what is sent, or the machine is off."
        case 7: "Nothing takes connections there: check the port, and whether the server runs."
        case 28
        where probes.contains { $0.failure == nil } && url.scheme?.lowercased() == "https" && outcome.certificates.isEmpty:
            "The server takes the connection and says nothing: it may not speak TLS at this port."
        case 28 where probes.contains { $0.failure == nil }:
            "The server takes the connection and says nothing: it is slow, or stuck."
        case 28: "No address answers: a firewall may drop what is sent, or the machine is off."
        case 35: "Check the port, and which versions of TLS both sides allow."
        case 47: "The redirects lead in a circle, or nowhere: ask the server's owner."
        case 52, 56, 18: "The server, or something on the way, ended the connection too early."
        case 58: "The server wants a certificate of yours that it trusts: --cert."
        case 60: DoctorTrust.advice(outcome)
        case 67: "The name or the password is wrong, or the server knows no way to ask for them that is allowed."
        case 90: "The server's key is another one than the pinned: it was renewed, or somebody stands between."
        default: "The step above says more."
        }
    }
}
