// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#endif

/// Sends commands to the program behind a server, one per line.
///
/// The program reads commands on a separate thread, so that callers do not block for long.
final class CommandPipe: Sendable {
    private let descriptor: Mutex<Int32>

    private init(_ descriptor: Int32) { self.descriptor = Mutex(descriptor) }

    /// Creates a pipe, and returns it with the end that the program reads from; the caller closes this end.
    static func make() throws -> (CommandPipe, end: Int32) {
        var ends: [Int32] = [0, 0]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw ServerProcess.Failure(description: "socketpair: errno \(errno)")
        }
        return (CommandPipe(ends[1]), ends[0])
    }

    /// Sends a command; does nothing if the program has ended, because the server detects this end by itself.
    func send(_ order: some Encodable) {
        guard var line = try? JSONEncoder().encode(order) else { preconditionFailure("an order cannot be encoded as JSON") }
        line.append(0x0A)
        descriptor.withLock { descriptor in
            var rest = line[...]
            while !rest.isEmpty {
                let flags = Int32(MSG_NOSIGNAL)
                let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, flags) }
                guard count > 0 else {
                    if count < 0, errno == EINTR { continue }
                    return
                }
                rest = rest.dropFirst(count)
            }
        }
    }

    deinit { _ = descriptor.withLock { Glibc.close($0) } }
}

/// Splits data into lines, and passes each line to a closure.
final class LineSplitter: Sendable {
    private let rest = Mutex(Data())
    private let line: @Sendable (Data) -> Void
    private let end: @Sendable () -> Void

    init(_ line: @escaping @Sendable (Data) -> Void, atEnd end: @escaping @Sendable () -> Void) {
        self.line = line
        self.end = end
    }

    /// Adds bytes; empty data means the end of the input.
    func take(_ data: Data) {
        let lines = rest.withLock { rest in
            rest += data
            let parts = rest.split(separator: 0x0A, omittingEmptySubsequences: false)
            rest = parts.last.map { Data($0) } ?? Data()
            return parts.dropLast().map { Data($0) }
        }
        for one in lines { line(one) }
        if data.isEmpty { end() }
    }
}
