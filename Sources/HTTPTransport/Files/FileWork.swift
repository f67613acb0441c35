//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import LoadingModel
import NIOPosix

/// The few threads on which files are opened, written and read, so that a slow disk never holds up an event loop.
package enum FileWork {
    private static let threads: NIOThreadPool = {
        let threads = NIOThreadPool(numberOfThreads: 4)
        threads.start()
        return threads
    }()

    /// Runs work on one of the threads, some time.
    package static func submit(_ work: @escaping @Sendable () -> Void) {
        threads.submit { _ in work() }
    }

    /// Runs work on one of the threads and returns what it did.
    package static func run<Value: Sendable>(
        _ work: @escaping @Sendable () throws(LoadError) -> Value
    ) async throws(LoadError) -> Value {
        let result: Result<Value, LoadError> = await withUnsafeContinuation { continuation in
            submit {
                do throws(LoadError) {
                    continuation.resume(returning: .success(try work()))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        return try result.get()
    }
}
