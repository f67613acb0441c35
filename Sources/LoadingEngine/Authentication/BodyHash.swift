//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import FoundationEssentials
import HTTPRules
import HTTPTransport
import LoadingModel
import NIOCore

/// Hashes the body of an upload for Digest's `auth-int`, off the loop.
enum BodyHash {
    /// Nil where the file cannot be read.
    static func ofFile(_ path: String, _ algorithm: DigestAlgorithm, in load: Load) async throws(LoadError) -> String? {
        try await LoopSlot.run(in: load, by: FileWork.submit) { try? hash(path, algorithm) }
    }

    /// Reads the file in pieces: one that is mapped and becomes shorter meanwhile would end the process.
    private static func hash(_ path: String, _ algorithm: DigestAlgorithm) throws(LoadError) -> String {
        let source = try FileSource.openNow(path: path)
        var hasher = DigestAlgorithm.Hasher(algorithm)
        var offset: Int64 = 0
        while offset < source.length {
            let count = min(source.length - offset, 1_048_576)
            hasher.update(Array(try source.readNow(offset: offset, count: Int(count)).get().readableBytesView))
            offset += count
        }
        return hasher.finish()
    }
}
