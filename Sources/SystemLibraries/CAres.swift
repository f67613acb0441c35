// SPDX-License-Identifier: Apache-2.0

import CSystemLibraries
import LibC

/// Asks name servers for addresses through c-ares: over UDP, and over TCP for truncated answers.
///
/// A call blocks until the name servers answer, for at most half a minute. Several threads may call at the same time.
package enum CAres {
    /// The result of a lookup.
    package enum Answer: Sendable, Hashable {
        /// Addresses of 4 or 16 bytes each, and their TTL. Empty if the name has no addresses of the family.
        case addresses([[UInt8]], seconds: Int)
        case failed(String)
    }

    package static let maximumMilliseconds: CInt = 30_000

    static let library = SystemLibrary.functions(of: ["libcares.so.2"], clib_ares_load)

    /// Whether c-ares is installed; opens it on first use.
    package static var isAvailable: Bool { library != nil }

    /// - Parameters:
    ///   - host: A host name.
    ///   - isV6: Whether to look up IPv6 addresses instead of IPv4 addresses.
    ///   - servers: Addresses, separated by commas, each with or without a port; IPv6 addresses with a port are in brackets.
    ///   - milliseconds: The timeout.
    /// - Returns: The addresses, or the reason for the failure.
    package static func lookUp(
        _ host: String, isV6: Bool, servers: String, milliseconds: CInt = maximumMilliseconds
    ) -> Answer {
        guard let library else { return .failed("c-ares is not installed") }
        var answer = clib_ares_answer()
        clib_ares_look_up(library.table, servers, host, CInt(isV6 ? CLIB_ARES_V6 : CLIB_ARES_V4), milliseconds, &answer)
        guard answer.is_known != 0 else {
            return .failed(SystemLibrary.text(answer.text))
        }
        return .addresses(SystemLibrary.addresses(answer.addresses, answer.count, isV6: isV6), seconds: Int(answer.ttl))
    }

    /// Asks for the records of a type.
    ///
    /// - Parameters:
    ///   - name: A complete name, to which no search domain is added.
    ///   - type: The number of the type.
    ///   - servers: As for ``lookUp(_:isV6:servers:milliseconds:)``.
    ///   - milliseconds: The timeout.
    /// - Returns: The reply, which may say that there are none, or the reason why there is no reply.
    package static func ask(_ name: String, type: Int, servers: String, milliseconds: CInt) -> NameServerReply {
        guard let library else { return .failed("c-ares is not installed") }
        var answer = clib_ares_answer()
        let message = NameServerReply.buffer {
            clib_ares_ask(library.table, servers, name, CInt(type), milliseconds, $0, $1, &answer)
        }
        return message.isEmpty ? .failed(SystemLibrary.text(answer.text)) : .message(message)
    }
}
