//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import ArgumentParser
import Crypto
import Foundation

/// `--checksum`: the expected digest of a file in aria2's syntax: `sha-256=` and 64 hexadecimal digits.
struct Checksum: Sendable, ExpressibleByArgument {
    private let digest: [UInt8]

    init?(argument: String) {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, ["sha-256", "sha256"].contains(parts[0].lowercased()), parts[1].utf8.count == 64,
            parts[1].utf8.allSatisfy({ $0 < 0x80 })
        else { return nil }
        let digits = parts[1].compactMap(\.hexDigitValue)
        guard digits.count == 64 else { return nil }
        digest = stride(from: 0, to: 64, by: 2).map { UInt8(digits[$0] * 16 + digits[$0 + 1]) }
    }

    /// Checks a file; throws if it has another digest or cannot be read.
    func check(_ path: String) throws(ToolFailure) {
        var hash = SHA256()
        do {
            let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
            defer { try? file.close() }
            while let data = try file.read(upToCount: 1 << 18), !data.isEmpty { hash.update(data: data) }
        } catch {
            throw ToolFailure(26, "cannot read \(path): \(ToolFailure.reason(error))")
        }
        guard Array(hash.finalize()) == digest else {
            throw ToolFailure(32, "the file does not match --checksum, and is not kept")
        }
    }
}
