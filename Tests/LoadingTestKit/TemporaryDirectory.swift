// SPDX-License-Identifier: Apache-2.0

package import Foundation

/// The directory of a test, removed with its content when the object is released.
package final class TemporaryDirectory: Sendable {
    package let url: URL

    package init(in place: URL = FileManager.default.temporaryDirectory) throws {
        url = place.appendingPathComponent("url-loading-test-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700]
        )
    }

    package var path: String { url.path }

    package func file(_ name: String) -> URL { url.appendingPathComponent(name) }

    /// Writes a file; returns its URL.
    @discardableResult
    package func write(_ bytes: some Sequence<UInt8>, to name: String) throws -> URL {
        let file = file(name)
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true
        )
        try Data(bytes).write(to: file)
        return file
    }

    package var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: path).sorted() }
    }

    deinit { try? FileManager.default.removeItem(at: url) }
}
