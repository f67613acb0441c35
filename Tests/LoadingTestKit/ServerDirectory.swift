// SPDX-License-Identifier: Apache-2.0

package import Foundation

/// A directory for a server whose processes drop root's rights.
///
/// Unlike a ``TemporaryDirectory``, it is accessible to every user, and TMPDIR does not affect it. It is removed when the object is
/// released.
package final class ServerDirectory: Sendable {
    package let url: URL

    package init() throws {
        url = URL(fileURLWithPath: "/tmp/url-loading-server-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: url.path)
    }

    package var path: String { url.path }

    package func file(_ name: String) -> URL { url.appendingPathComponent(name) }

    /// Writes a file that every user can read.
    @discardableResult
    package func write(_ bytes: some Sequence<UInt8>, to name: String) throws -> URL {
        let file = file(name)
        try Data(bytes).write(to: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file.path)
        return file
    }

    /// Creates a directory that every user can write to.
    func makeFolder(_ name: String) throws {
        try FileManager.default.createDirectory(at: file(name), withIntermediateDirectories: true)
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: file(name).path)
    }

    package func text(of name: String) -> String { (try? String(contentsOf: file(name), encoding: .utf8)) ?? "" }

    /// Waits until a log meets a condition, because servers write their logs after the response; returns false after 20 seconds
    /// without a change.
    func log(_ name: String, says condition: (String) -> Bool) throws -> Bool {
        let changes = try FileChanges(below: file(name).deletingLastPathComponent())
        while !condition(text(of: name)) { guard changes.wait(milliseconds: 20_000) else { return false } }
        return true
    }

    deinit { try? FileManager.default.removeItem(at: url) }
}
