//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import CSystemLibraries

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Asks name servers for addresses, by c-ares: over UDP, and over TCP where an answer is too long for that.
///
/// A call blocks for as long as the name servers do not answer, half a minute at most. Calls may come from any thread, several at a time.
package enum CAres {
    /// What came of a look-up.
    package enum Answer: Sendable, Hashable {
        /// 4 or 16 bytes each; the name has none of the family where it is empty. For how many seconds that holds.
        case addresses([[UInt8]], seconds: Int)
        case failed(String)
    }

    /// Goes from thread to thread; the C side never changes it once it is made.
    ///
    /// Sendable because nothing changes what it points to, and nothing frees it.
    struct Library: @unchecked Sendable {
        let functions: OpaquePointer
    }

    package static let longestMilliseconds: CInt = 30_000

    static let library: Library? = {
        guard let opened = SystemLibrary.open(["libcares.so.2"]) else { return nil }
        var missing: UnsafePointer<CChar>?
        guard let functions = csl_ares_load(opened.handle, &missing) else {
            opened.reject(missing: missing.map { String(cString: $0) } ?? "")
            return nil
        }
        return Library(functions: functions)
    }()

    /// - Parameters:
    ///   - host: A name.
    ///   - isV6: Whether IPv6 addresses are wanted, or IPv4 ones.
    ///   - servers: Addresses with or without a port, IPv6 ones with one in brackets; separated by commas.
    ///   - milliseconds: How long it may take.
    /// - Returns: The addresses, or why there are none.
    package static func lookUp(
        _ host: String, isV6: Bool, servers: String, milliseconds: CInt = longestMilliseconds
    ) -> Answer {
        guard let library else { return .failed("c-ares is not installed") }
        var answer = csl_ares_answer()
        csl_ares_look_up(library.functions, servers, host, CInt(isV6 ? CSL_ARES_V6 : CSL_ARES_V4), milliseconds, &answer)
        guard answer.is_known != 0 else {
            return .failed(withUnsafeBytes(of: &answer.text) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
        }
        let length = isV6 ? 16 : 4
        let addresses = withUnsafeBytes(of: &answer.addresses) { bytes in
            (0..<Int(answer.count)).map { Array(bytes[$0 * 16..<$0 * 16 + length]) }
        }
        return .addresses(addresses, seconds: Int(answer.ttl))
    }
}
