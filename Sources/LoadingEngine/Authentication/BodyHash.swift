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
        let result = NIOLoopBoundBox(nil as String?, eventLoop: load.session.loop)
        let slot = LoopSlot(load)
        FileWork.submit { [loop = load.session.loop] in
            let hash = try? hash(path, algorithm)
            loop.execute { result.value = hash }
            slot.fill()
        }
        try await slot.wait()
        return result.value
    }

    private static func hash(_ path: String, _ algorithm: DigestAlgorithm) throws -> String {
        let data = try Data(contentsOf: URL(filePath: path), options: .mappedIfSafe)
        var hasher = DigestAlgorithm.Hasher(algorithm)
        var rest = data[...]
        while !rest.isEmpty {
            hasher.update(Array(rest.prefix(1_048_576)))
            rest = rest.dropFirst(1_048_576)
        }
        return hasher.finish()
    }
}
