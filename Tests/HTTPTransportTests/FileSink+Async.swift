// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import LoadingModel
import NIOCore

/// The steps of the sink as async functions.
extension FileSink {
    static func create(in directory: String, expectedLength: Int64? = nil) async throws -> FileSink {
        try await FileWork.run(at: FilePlace(opening: directory)) { () throws(LoadError) in
            try createNow(in: directory, expectedLength: expectedLength)
        }
    }

    static func reopen(path: String, length: Int64, expectedLength: Int64? = nil) async throws -> FileSink {
        try await FileWork.run(at: FilePlace(opening: path)) { () throws(LoadError) in
            try reopenNow(path: path, length: length, expectedLength: expectedLength)
        }
    }

    func write(_ buffer: ByteBuffer) async throws {
        if try !enqueue(buffer) { try await room() }
    }

    func room() async throws { try await ended(room) }
    func flush() async throws { try await ended(flush) }
    func close() async throws -> Int64 { try await ended(close) }
    func abort() async { try? await ended(abort) }

    private func ended<Value>(_ step: (@escaping Done<Value>) -> Void) async throws -> Value {
        try await withCheckedContinuation { continuation in step { continuation.resume(returning: $0) } }.get()
    }
}
