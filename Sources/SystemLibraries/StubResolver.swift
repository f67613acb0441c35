// SPDX-License-Identifier: Apache-2.0

import CSystemLibraries

/// Asks the system's name servers for records that `getaddrinfo` cannot find, through the C library's stub resolver (resolver(3)).
///
/// Only glibc has it. A call blocks until a name server answers, usually for at most ten seconds. Several threads may call at the
/// same time.
package enum StubResolver {
    /// Sendable because the table behind the pointer is never changed or freed.
    private struct Functions: @unchecked Sendable {
        let table: OpaquePointer
    }

    private static let functions = clib_resolver_load().map { Functions(table: $0) }

    /// Whether the C library has the resolver; looks for it on first use.
    package static var isAvailable: Bool { functions != nil }

    /// Asks for the records of a type.
    ///
    /// - Returns: The reply, which may say that there are none, or the reason why there is no reply.
    package static func ask(_ name: String, type: Int) -> NameServerReply {
        guard let functions else { return .failed("the system has no resolver for these records") }
        let message = NameServerReply.buffer { clib_resolver_ask(functions.table, name, CInt(type), $0, $1) }
        return message.isEmpty ? .failed("no name server answered") : .message(message)
    }
}

/// The reply of a name server, as a message of DNS.
package enum NameServerReply: Sendable, Hashable {
    case message([UInt8])
    case failed(String)

    /// The maximum size of a message (RFC 1035, section 4.2.2).
    private static let maximumSize = 65_535

    /// Returns the bytes that `body` writes into a buffer for the largest message, and whose number it returns.
    static func buffer(_ body: (UnsafeMutablePointer<UInt8>?, CInt) -> CInt) -> [UInt8] {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: maximumSize) { buffer in
            let count = Int(body(buffer.baseAddress, CInt(maximumSize)))
            return Array(buffer[..<max(0, min(count, maximumSize))])
        }
    }
}
