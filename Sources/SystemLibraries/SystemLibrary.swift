//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import CSystemLibraries
import Synchronization

/// An optional library of the system, opened on first use.
package final class SystemLibrary: Sendable {
    /// The result of looking for a library.
    package struct Finding: Sendable, Hashable {
        /// The name by which the library is usually known.
        package var name: String
        /// The path of the file; nil if the library cannot be used.
        package var path: String?
        /// Why the library cannot be used.
        package var failure: String?
    }

    private static let findings = Mutex<[Finding]>([])

    /// The result for every library that this package can use.
    package static var report: [Finding] {
        _ = GSSAPI.library
        _ = SecretService.library
        _ = Unbound.library
        _ = NetworkManager.library
        _ = CAres.library
        _ = Avahi.library
        _ = JavaScript.library
        _ = DesktopSettings.library
        _ = Codec.brotli
        _ = Codec.zstandard
        return findings.withLock { $0 }
    }

    package let path: String
    private let name: String
    private let address: UInt

    private init(name: String, path: String, address: UInt) {
        self.name = name
        self.path = path
        self.address = address
    }

    /// Opens the first library that exists among these names ("libfoo.so.2").
    ///
    /// All names must stand for the same interface.
    ///
    /// Blocks while the dynamic linker loads the library. Libraries are never unloaded.
    package static func open(_ names: [String]) -> SystemLibrary? {
        var reasons: [String] = []
        for name in names {
            var opening = clib_opening()
            let isOpen = clib_open(name, &opening) != 0
            let text = withUnsafeBytes(of: &opening.text) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            if isOpen, let handle = opening.handle {
                note(Finding(name: name, path: text, failure: nil))
                return SystemLibrary(name: name, path: text, address: UInt(bitPattern: handle))
            }
            reasons.append(text)
        }
        note(Finding(name: names.first ?? "", path: nil, failure: reasons.joined(separator: "; ")))
        return nil
    }

    var handle: UnsafeMutableRawPointer? { UnsafeMutableRawPointer(bitPattern: address) }

    /// Records that the library exists but lacks a function.
    func reject(missing function: String) {
        Self.note(Finding(name: name, path: nil, failure: "\(path) lacks the function \(function)"))
    }

    private static func note(_ finding: Finding) {
        findings.withLock { findings in
            findings.removeAll { $0.name == finding.name }
            findings.append(finding)
        }
    }
}
