// SPDX-License-Identifier: Apache-2.0

package import CQUIC
import CSystemLibraries
import FoundationEssentials
import Synchronization

/// Speaks QUIC and HTTP/3 by ngtcp2, nghttp3 and GnuTLS.
///
/// Three libraries are opened together, or none of them. Two sets exist, whose binary interfaces differ; libraries of both sets are
/// never mixed.
package enum QUIC {
    /// The functions of a set.
    ///
    /// Sendable because the table behind the pointer is never changed or freed.
    package struct Library: @unchecked Sendable {
        package let functions: UnsafePointer<cquic_library>
        /// The name of the library for QUIC, which says which set this is.
        package let name: String
        /// The library's path.
        package let path: String
    }

    private struct Interface {
        /// The one first that needs most others: if it is missing, nothing else is loaded.
        let crypto: String
        let quic: String
        let http: String
        let load:
            (
                UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?,
                UnsafeMutablePointer<UnsafePointer<CChar>?>?
            ) -> UnsafePointer<cquic_library>?
    }

    /// The packages of the newer set, in Debian 13 and Ubuntu 25.04.
    private static let newPackages = ["libngtcp2-16", "libngtcp2-crypto-gnutls8", "libnghttp3-9"]
    /// The packages of the older set, in Debian 12 and Ubuntu 24.04.
    private static let oldPackages = ["libngtcp2-9", "libngtcp2-crypto-gnutls2", "libnghttp3-3"]

    private static let opened = open()

    /// The libraries; nil if no set can be used.
    ///
    /// They are opened on first use, which blocks for 2 ms, plus the time of reading them from disk.
    package static var library: Library? { opened.library }
    /// What to install, or why the libraries can never be used; nil if they can be used.
    ///
    /// Opens them, as ``library`` does.
    package static var failure: String? { opened.failure }
    /// Whether the libraries were opened, so that nothing blocks.
    package static var wasOpened: Bool { isOver.load(ordering: .acquiring) }

    private static let isOver = Atomic(false)

    private static func open() -> (library: Library?, failure: String?) {
        defer { isOver.store(true, ordering: .releasing) }
        let interfaces = [
            Interface(
                crypto: "libngtcp2_crypto_gnutls.so.8", quic: "libngtcp2.so.16", http: "libnghttp3.so.9", load: cquic_load_1),
            Interface(
                crypto: "libngtcp2_crypto_gnutls.so.2", quic: "libngtcp2.so.9", http: "libnghttp3.so.3", load: cquic_load_0),
        ]
        var reasons: [String] = []
        for interface in interfaces {
            switch open(interface) {
            case .success(let library):
                SystemLibrary.note(SystemLibrary.Finding(name: library.name, path: library.path, failure: nil))
                return (library, nil)
            case .failure(let reason): reasons.append(reason.text)
            }
        }
        let advice: String
        if clib_can_open() != 0 {
            let release = (try? String(contentsOfFile: "/etc/os-release", encoding: .utf8)) ?? ""
            advice = "install \(packages(for: release))"
        } else {
            reasons = []
            advice = "this program is linked statically, and cannot load libraries"
        }
        let failure = (reasons + [advice]).joined(separator: "; ")
        SystemLibrary.note(SystemLibrary.Finding(name: interfaces[0].quic, path: nil, failure: failure, advice: advice))
        return (nil, advice)
    }

    private struct Reason: Error {
        let text: String
    }

    private static func open(_ interface: Interface) -> Result<Library, Reason> {
        var handles: [UnsafeMutableRawPointer] = []
        var path = ""
        for name in [interface.crypto, interface.http, interface.quic] {
            switch SystemLibrary.handle(name) {
            case .opened(let handle, let place):
                handles.append(handle)
                path = place
            case .failed(let reason): return .failure(Reason(text: reason))
            }
        }
        var missing: UnsafePointer<CChar>?
        guard let functions = interface.load(handles[2], handles[0], handles[1], &missing) else {
            let function = missing.map { String(cString: $0) } ?? ""
            return .failure(Reason(text: "\(path), \(interface.crypto) or \(interface.http) lacks \(function)"))
        }
        return .success(Library(functions: functions, name: interface.quic, path: path))
    }

    /// Returns the names of the packages for a release, which is described as in os-release(5); both sets if it is unknown.
    package static func packages(for release: String) -> String {
        var values: [String: String] = [:]
        for line in release.split(whereSeparator: \.isNewline) {
            let parts = line.split(separator: "=", maxSplits: 1)
            guard parts.count == 2 else { continue }
            values[String(parts[0])] = parts[1].filter { $0 != "\"" && $0 != "'" }
        }
        let (old, new) = (oldPackages.joined(separator: " "), newPackages.joined(separator: " "))
        let firstNew = ["debian": 13, "ubuntu": 25][values["ID"] ?? ""]
        guard let firstNew, let version = values["VERSION_ID"]?.split(separator: ".").first.flatMap({ Int($0) }) else {
            return "\(new), or on older systems \(old)"
        }
        return version < firstNew ? old : new
    }
}
