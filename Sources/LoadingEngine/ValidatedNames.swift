// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import LoadingModel
import NIOCore
import SystemLibraries

/// Lookups of host names whose addresses must be validated by DNSSEC.
///
/// The lookups have their own threads, and their own cache, because results without validation must not be used.
enum ValidatedNames {
    static let lookups = NameLookups(threads: "url-dnssec") { host, family in
        switch Unbound.lookUp(host, isV6: family == .inet6) {
        case .addresses(let addresses, let seconds):
            NameLookups.Finding(addresses, of: host, seconds: seconds)
        case .unsigned:
            failure(host, "its addresses are not signed, but requiresDNSSECValidation is set")
        case .bogus(let reason): failure(host, "the answer does not match its signature: \(reason)")
        case .failed(let reason): failure(host, "DNSSEC cannot be checked: \(reason)")
        case .unanswered(let reason): failure(host, "DNSSEC cannot be checked: \(reason)", isUnansweredLookup: true)
        }
    }

    static func forget() {
        lookups.forget()
        Unbound.forget()
    }

    private static func failure(_ host: String, _ reason: String, isUnansweredLookup: Bool = false) -> NameLookups.Finding {
        var error = LoadError(.dnsLookupFailed, "looking up \(host): \(reason)")
        error.isUnansweredLookup = isUnansweredLookup
        return NameLookups.Finding(.failure(error), lifetime: 0)
    }
}
