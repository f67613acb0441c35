// SPDX-License-Identifier: Apache-2.0

package import CQUIC

/// The functions of the libraries that speak QUIC, which are opened at run time.
///
/// Sendable because the table behind the pointer is never changed or freed.
package struct QUICLibrary: @unchecked Sendable {
    let functions: UnsafePointer<cquic_library>

    package init(_ functions: UnsafePointer<cquic_library>) { self.functions = functions }

    /// Whether servers' SETTINGS are known, and with them whether a WebSocket may be opened (RFC 9220).
    package var tellsSettings: Bool { functions.pointee.tells_settings != 0 }
}

extension UnsafeRawBufferPointer {
    /// The same bytes for the library.
    var forQUIC: cquic_bytes { cquic_bytes(start: baseAddress?.assumingMemoryBound(to: UInt8.self), count: count) }
}

extension cquic_bytes {
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }
}
