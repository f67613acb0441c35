// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import LoadingStores
import Synchronization

/// A temporary folder that is deleted with the object, and the warnings that stores gave about its files.
final class Folder: Sendable {
    private static let warnings: Mutex<[String]> = {
        StoreWarnings.hook.withLock { hook in
            hook = { message in Folder.note(message) }
        }
        return Mutex([])
    }()

    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.path + "/stores-" + UUID().uuidString
        try FileManager.default.createDirectory(
            atPath: path,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
        _ = Self.warnings.withLock(\.count)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    private static func note(_ message: String) {
        warnings.withLock { $0.append(message) }
    }

    var warnings: [String] {
        Self.warnings.withLock { $0.filter { $0.contains(path) } }
    }

    func path(_ name: String) -> String { path + "/" + name }

    var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: path).sorted() }
    }

    func bytes(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(filePath: path(name))))
    }

    func write(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: URL(filePath: path(name)))
        try setMode(0o600, of: name)
    }

    func setMode(_ mode: Int, of name: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path(name))
    }

    func mode(of name: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path(name))[.posixPermissions] as? Int
    }
}
