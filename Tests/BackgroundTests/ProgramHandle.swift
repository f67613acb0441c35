// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit

#if canImport(Glibc)
import Glibc
#endif

struct PlaceFailure: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}

/// Lines that programs write about their events: each line is written at once and as a whole, whatever happens to the program.
final class ProgramJournal: Sendable {
    struct Line: Sendable {
        var label: String
        var text: String
    }

    let lines = Watched<[Line]>([])
    private let descriptor: CInt

    init(_ fifo: URL) throws {
        guard mkfifo(fifo.path, 0o600) == 0 else { throw PlaceFailure("mkfifo: errno \(errno)") }
        // The pipe is also opened for writing, so that reading never reaches its end.
        descriptor = open(fifo.path, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { throw PlaceFailure("\(fifo.path): errno \(errno)") }
        Thread.detachNewThread { [descriptor, lines] in
            var rest: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = read(descriptor, &buffer, buffer.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { break }
                rest += buffer.prefix(count)
                while let end = rest.firstIndex(of: 10) {
                    let parts = String(decoding: rest[..<end], as: UTF8.self).split(
                        separator: "\t", maxSplits: 1, omittingEmptySubsequences: false)
                    rest.removeSubrange(...end)
                    guard parts.count == 2 else {
                        Glibc.close(descriptor)
                        return
                    }
                    lines.change { $0.append(Line(label: String(parts[0]), text: String(parts[1]))) }
                }
            }
            Glibc.close(descriptor)
        }
    }

    func close() { _ = write(descriptor, "end\n", 4) }
}

/// A program as seen by its test.
final class ProgramHandle: Sendable {
    let label: String
    /// The process of the program; nil if the daemon starts it.
    private let process: ServerProcess?
    private let orders: CInt
    private let journal: ProgramJournal

    init(label: String, process: ServerProcess?, orders: CInt, journal: ProgramJournal) {
        self.label = label
        self.process = process
        self.orders = orders
        self.journal = journal
    }

    deinit { if orders >= 0 { close(orders) } }

    /// Sends the program its next order; see ``ProgramScript``.
    func tell(_ words: String...) { tell(words) }
    func tell(_ words: [String]) { write(ProgramScript.line(words)) }

    private func write(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = Glibc.write(orders, bytes, bytes.count)
    }

    /// All lines that the program has written so far.
    var lines: [String] { journal.lines.read { [label] in $0.filter { $0.label == label }.map(\.text) } }

    /// Waits for a line with this beginning and this part; `number` is the number of such lines before it.
    @discardableResult
    func line(_ start: String, _ part: String = "", number: Int = 0) async throws -> String {
        try await journal.lines.value { [label] lines in
            lines.lazy.filter { $0.label == label && $0.text.hasPrefix(start) && (part.isEmpty || $0.text.contains(part)) }
                .dropFirst(number).first?.text
        }
    }

    /// Tells the program to exit normally once it has sent all its messages, and waits until it has exited.
    func leave() async throws {
        tell("leave")
        _ = try await process?.end()
    }

    /// Kills the program, and waits until it has ended.
    func kill() async throws {
        process?.signal(SIGKILL)
        try await ended()
    }

    func ended() async throws { _ = try await process?.end() }
}
