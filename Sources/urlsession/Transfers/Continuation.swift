//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import Synchronization
import URLLoading

/// What `--continue-at` goes on from: a file's end, or a number of bytes where the body goes to standard output.
enum Continuation: Sendable {
    case file(PartialFile)
    case offset(Int64)

    /// Nil where there is nothing before what is to come.
    ///
    /// - Parameters:
    ///   - argument: `-`, or a number.
    ///   - file: Where the body goes; nil for standard output.
    /// - Throws: Where the file is not of that length, or may be of another version than what is to come.
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
            throw ToolFailure(33, "\(file) has \(length) bytes, and not \(offset): '-C -' goes on behind what is there")
        }
        guard length > 0 else { return nil }
        guard let partial = PartialFile(file) else {
            throw ToolFailure(33, "cannot go on with \(file): when it was begun is not known")
        }
        self = .file(partial)
    }

    /// The files that loads of this command are for.
    private static let claimed = Mutex<Set<String>>([])

    /// Notes that a load is for a file; what one URL has left is no beginning of another.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - continues: Whether the load goes on with what is there.
    /// - Throws: Where it would go on with what another load of the command wrote.
    static func claim(_ path: String, continues: Bool) throws(ToolFailure) {
        let isNew = claimed.withLock { $0.insert(URL(fileURLWithPath: path).standardizedFileURL.path).inserted }
        if continues, !isNew, !path.hasPrefix("/dev/") { throw ToolFailure(2, "two URLs are for \(path)") }
    }

    var start: Int64 {
        switch self {
        case .file(let partial): partial.size
        case .offset(let offset): offset
        }
    }

    var isFile: Bool { if case .file = self { true } else { false } }

    /// Why a response's body is not wanted: 0 where nothing is missing, 33 where it is not the rest; nil where it is wanted.
    func objection(to response: URLResponse) -> ToolFailure? {
        guard let response = response as? HTTPURLResponse else {
            return ToolFailure(33, "the server does not say which part it sends")
        }
        guard response.statusCode < 400 || response.statusCode == 416 else { return nil }
        switch self {
        case .file(let partial):
            switch partial.judge(response) {
            case .goesOn: return nil
            case .isComplete: return ToolFailure(0, nil)
            case .refused(let reason): return ToolFailure(33, "cannot go on with \(partial.path): \(reason)")
            }
        case .offset(let offset):
            let words = response.value(forHTTPHeaderField: "Content-Range")?.split(whereSeparator: { " -/".contains($0) }) ?? []
            if response.statusCode == 206, words.first == "bytes", words.count == 4, words[1] == "\(offset)" { return nil }
            return ToolFailure(33, "the server does not send the part from \(offset) on")
        }
    }
}
