// SPDX-License-Identifier: Apache-2.0

import LibC
import NIOCore
import NIOSSL

/// Human-readable descriptions of errors.
///
/// An error without a description appears only as the cause of a `LoadError`.
enum PrintableFailure {
    static func text(_ code: CInt) -> String { strerror(code).map { String(cString: $0).lowercased() } ?? "error \(code)" }

    static func text(_ error: any Error) -> String? {
        if let error = error as? IOError { return text(error.errnoCode) }
        if let failure = error as? QUICFailure { return failure.reason }
        return reason(inBoringSSL: "\(error)")
    }

    /// Returns what a peer sent, without what a terminal would interpret.
    static func printable(_ text: String) -> String {
        String(text.unicodeScalars.prefix(200).map { $0.properties.generalCategory == .control ? " " : Character($0) })
    }

    /// Returns the name of BoringSSL's first error, such as "wrong version number", without the source location.
    private static func reason(inBoringSSL text: String) -> String? {
        let mark = "OPENSSL_internal:"
        var rest = text[...]
        while !rest.isEmpty, !rest.hasPrefix(mark) { rest = rest.dropFirst() }
        let name = rest.dropFirst(mark.count).prefix { $0.isASCII && ($0.isUppercase || $0.isNumber || $0 == "_") }
        return name.isEmpty ? nil : String(name.map { $0 == "_" ? " " : $0 }).lowercased()
    }
}
