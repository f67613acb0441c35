// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Crypto
import Foundation

/// `--checksum`: the expected digest of a file in aria2's syntax: `sha-256=` and 64 hexadecimal digits.
struct Checksum: Sendable, ExpressibleByArgument {
    /// The digest in hexadecimal digits.
    private let digest: String

    init?(argument: String) {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, ["sha-256", "sha256"].contains(parts[0].lowercased()), parts[1].utf8.count == 64,
            parts[1].allSatisfy({ $0.isASCII && $0.isHexDigit })
        else { return nil }
        digest = parts[1].lowercased()
    }

    /// Checks a file; throws if it has another digest or cannot be read.
    func check(_ path: String) throws(ToolFailure) {
        var hash = SHA256()
        try ToolFailure.describing(26, "cannot read \(path)") {
            let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
            defer { try? file.close() }
            while let data = try file.read(upToCount: 1 << 18), !data.isEmpty { hash.update(data: data) }
        }
        guard hash.finalize().map({ String(format: "%02x", $0) }).joined() == digest else {
            throw ToolFailure(32, "the file does not match --checksum, and is not kept")
        }
    }
}
