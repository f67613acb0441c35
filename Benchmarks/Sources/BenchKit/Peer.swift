// SPDX-License-Identifier: Apache-2.0

/// One HTTP client, with the methods that the benchmarks use.
///
/// Methods that a client does not support throw `Unsupported`.
package protocol Peer: Sendable {
    /// Returns the client for a caller, because several clients can share the work.
    func peer(of caller: Int) -> Self
    /// Loads the whole body into memory, with the client's async call, and returns its length.
    func get(_ url: String) async throws -> Int
    /// Loads the body into a file, in the client's own way.
    func download(_ url: String, to path: String) async throws -> Int
    /// Consumes the body as an async sequence.
    func iterate(_ url: String) async throws -> Int
    /// Consumes the body piece by piece in a delegate.
    func delegate(_ url: String) async throws -> Int
    func upload(_ path: String, to url: String) async throws
    /// The executor of the callers; nil for Swift's thread pool.
    var executor: (any TaskExecutor)? { get }
}

extension Peer {
    package func peer(of caller: Int) -> Self { self }
    package var executor: (any TaskExecutor)? { nil }
}

package struct Unsupported: Error {
    package init() {}
}

package struct BenchFailure: Error {
    package let message: String
    package init(_ message: String) { self.message = message }
}
