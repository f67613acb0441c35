// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading

/// The position for `--continue-at`: the end of a file, or an offset if the body goes to standard output.
enum ResumePosition: Sendable {
    case file(PartialFile)
    case offset(Int64)

    /// Nil to load from the beginning.
    ///
    /// - Parameters:
    ///   - argument: `-`, or a number.
    ///   - file: The body's destination; nil for standard output.
    /// - Throws: If the file's length is not the given number, or its creation time is unknown.
    init?(_ argument: String, file: String?) throws(ToolFailure) {
        let offset = Int64(argument)
        guard let file, file != "-" else {
            guard let offset, offset > 0 else { return nil }
            self = .offset(offset)
            return
        }
        let size = (try? FileManager.default.attributesOfItem(atPath: file))?[.size] as? NSNumber
        let length = size?.int64Value ?? 0
        if let offset, offset != length {
            throw ToolFailure(33, "\(file) has \(length) bytes, and not \(offset): '-C -' continues at its end")
        }
        guard length > 0 else { return nil }
        guard let partial = PartialFile(file) else {
            throw ToolFailure(33, "cannot continue \(file): its creation time is not known")
        }
        self = .file(partial)
    }

    /// The files of this command's loads.
    private static let claimed = Mutex<Set<String>>([])

    /// Registers the file that a load writes: a load must not continue the partial file of another URL.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - continues: Whether the load continues the existing file.
    /// - Throws: If the load would continue a file of another load of the command.
    static func claim(_ path: String, continues: Bool) throws(ToolFailure) {
        let isNew = claimed.withLock { $0.insert(URL(fileURLWithPath: path).standardizedFileURL.path).inserted }
        if continues, !isNew, !path.hasPrefix("/dev/") { throw ToolFailure(2, "two URLs have the same file \(path)") }
    }

    var start: Int64 {
        switch self {
        case .file(let partial): partial.size
        case .offset(let offset): offset
        }
    }

    var isFile: Bool { if case .file = self { true } else { false } }

    /// Returns the reason why a response's body is not wanted; nil if it is wanted.
    ///
    /// The exit code is 0 if the file is complete, and 33 if the body is not the rest of the file.
    func objection(to response: URLResponse) -> ToolFailure? {
        guard let response = response as? HTTPURLResponse else {
            return ToolFailure(33, "the server does not say which part it sends")
        }
        guard response.statusCode < 400 || response.statusCode == 416 else { return nil }
        switch self {
        case .file(let partial):
            switch partial.judge(response) {
            case .isRemainder, nil: return nil
            case .isComplete: return ToolFailure(0, nil)
            case .refused(let reason): return ToolFailure(33, "cannot continue \(partial.path): \(reason)")
            }
        case .offset(let offset):
            let words = response.value(forHTTPHeaderField: "Content-Range")?.split(whereSeparator: { " -/".contains($0) }) ?? []
            if response.statusCode == 206, PartialFile.restLength(words, from: offset) != nil { return nil }
            return ToolFailure(33, "the server does not send the part from byte \(offset) on")
        }
    }
}
