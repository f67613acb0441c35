// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import LoadingModel
import NIOCore

/// Hashes the body of an upload for Digest's `auth-int`, off the loop.
enum BodyHash {
    private static let pieceSize: Int64 = 1_048_576

    /// Returns the hash of a file, or nil if the file cannot be read.
    ///
    /// The file is read in pieces, so that other work on the threads gets its turn. The file is not mapped, because truncating a
    /// mapped file would crash the process.
    static func ofFile(
        _ path: String, _ part: ResumableUpload.Part?, _ algorithm: DigestAlgorithm, in control: LoadControl
    ) async throws(LoadError) -> String? {
        let opened = try await step(at: FilePlace(opening: path), in: control) { try? LoadedFile.openNow(path: path) }
        guard let source = opened else { return nil }
        var hasher = DigestAlgorithm.Hasher(algorithm)
        var offset = part?.offset ?? 0
        // The content of a file without a known length is hashed when it has been read for sending.
        guard let length = source.length else { return nil }
        let end = part?.count.map { offset + $0 } ?? length
        while offset < end {
            let count = min(end - offset, pieceSize)
            let next = try await step(at: FilePlace(opening: path), in: control) { [hasher, offset] in
                hashed(hasher, source, offset: offset, count: Int(count))
            }
            guard let next else { return nil }
            hasher = next
            offset += count
        }
        return hasher.finish()
    }

    private static func step<Value: Sendable>(
        at place: FilePlace, in control: LoadControl, _ work: @escaping @Sendable () -> Value
    ) async throws(LoadError) -> Value {
        try await LoopSlot.run(in: control, by: { FileWork.submit(at: place, $0) }, work)
    }

    private static func hashed(
        _ hasher: DigestAlgorithm.Hasher, _ source: LoadedFile, offset: Int64, count: Int
    ) -> DigestAlgorithm.Hasher? {
        guard let piece = try? source.readNow(offset: offset, count: count).get() else { return nil }
        var hasher = hasher
        hasher.update(Array(piece.readableBytesView))
        return hasher
    }
}
