// SPDX-License-Identifier: Apache-2.0

import CSystemLibraries
import Synchronization

/// An optional library of the system, opened on first use.
package struct SystemLibrary: Sendable {
    /// The result of looking for a library.
    package struct Finding: Sendable, Hashable {
        /// The name by which the library is usually known.
        package var name: String
        /// The path of the file; nil if the library cannot be used.
        package var path: String?
        /// Why the library cannot be used.
        package var failure: String?
        /// What to install, if that is known.
        package var advice: String?
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
        _ = QUIC.library
        return findings.withLock { $0 }
    }

    package let path: String
    private let name: String
    private let address: UInt

    /// Opens the first library that exists among these names ("libfoo.so.2").
    ///
    /// All names must stand for the same interface.
    ///
    /// Blocks while the dynamic linker loads the library. Libraries are never unloaded.
    package static func open(_ names: [String]) -> SystemLibrary? {
        var reasons: [String] = []
        for name in names {
            switch handle(name) {
            case .opened(let handle, let path):
                note(Finding(name: name, path: path, failure: nil))
                return SystemLibrary(path: path, name: name, address: UInt(bitPattern: handle))
            case .failed(let reason): reasons.append(reason)
            }
        }
        note(Finding(name: names.first ?? "", path: nil, failure: reasons.joined(separator: "; ")))
        return nil
    }

    enum Opening {
        case opened(UnsafeMutableRawPointer, path: String)
        /// The dynamic linker's error message.
        case failed(String)
    }

    /// Opens a library by one name.
    static func handle(_ name: String) -> Opening {
        var opening = clib_opening()
        let isOpen = clib_open(name, &opening) != 0
        let text = text(opening.text)
        if isOpen, let handle = opening.handle { return .opened(handle, path: text) }
        return .failed(text)
    }

    /// The functions of a library.
    ///
    /// Sendable because the table behind the pointer is never changed or freed.
    struct Functions: @unchecked Sendable {
        let table: OpaquePointer
    }

    typealias Load = (UnsafeMutableRawPointer?, UnsafeMutablePointer<UnsafePointer<CChar>?>?) -> OpaquePointer?

    /// Returns the functions of the first library that exists among these names, or nil if it lacks one of them.
    static func functions(of names: [String], _ load: Load) -> Functions? {
        guard let library = open(names) else { return nil }
        var missing: UnsafePointer<CChar>?
        if let table = load(UnsafeMutableRawPointer(bitPattern: library.address), &missing) { return Functions(table: table) }
        let function = missing.map { String(cString: $0) } ?? ""
        note(Finding(name: library.name, path: nil, failure: "\(library.path) lacks the function \(function)"))
        return nil
    }

    /// The text in an array of C characters that ends with NUL.
    static func text<Characters>(_ characters: Characters) -> String {
        withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    /// The addresses in an array of C, which has 16 bytes for each.
    static func addresses<Bytes>(_ bytes: Bytes, _ count: Int32, isV6: Bool) -> [[UInt8]] {
        withUnsafeBytes(of: bytes) { bytes in (0..<Int(count)).map { Array(bytes[$0 * 16..<$0 * 16 + (isV6 ? 16 : 4)]) } }
    }

    static func note(_ finding: Finding) {
        findings.withLock { findings in
            findings.removeAll { $0.name == finding.name }
            findings.append(finding)
        }
    }
}
