// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// Reads files for options, and standard input for the name `-`.
enum InputFile {
    /// Content that may be needed again: standard input, and files of header fields, which may be pipes.
    private static let known = Mutex<[String: Data]>([:])

    /// Like ``read(_:)``, but keeps the content for further calls.
    static func readOnce(_ path: String) throws(ToolFailure) -> Data {
        if let data = known.withLock({ $0[path] }) { return data }
        let data = try read(path)
        known.withLock { $0[path] = data }
        return data
    }

    /// Like ``read(_:)``, but uses up standard input, so that it is not also sent as request content.
    static func take(_ path: String) throws(ToolFailure) -> Data {
        let data = try read(path)
        if path == "-" { known.withLock { $0[path] = Data() } }
        return data
    }

    /// Whether any option has read standard input.
    static var hasReadStandardInput: Bool { known.withLock { $0["-"] != nil } }

    static func read(_ path: String) throws(ToolFailure) -> Data {
        if path == "-" {
            if let data = known.withLock({ $0[path] }) { return data }
            guard let data = try? FileHandle.standardInput.readToEnd() ?? Data() else {
                throw ToolFailure(26, "cannot read standard input")
            }
            known.withLock { $0[path] = data }
            return data
        }
        // Read with a handle, because a shell's `<(…)` is a pipe and has no length.
        guard let handle = FileHandle(forReadingAtPath: path), let data = try? handle.readToEnd() ?? Data() else {
            throw ToolFailure(26, "cannot read \(path)")
        }
        return data
    }

    /// Returns the length of a regular file; nil for other files, and for a file whose size is not the length of its content, as in
    /// /proc and /sys.
    static func exactLength(_ path: String) -> Int64? {
        // Symbolic links are followed, because a link in /proc may lead to a pipe, which has no other name.
        let target = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        guard let facts = try? FileManager.default.attributesOfItem(atPath: target),
            facts[.type] as? FileAttributeType == .typeRegular, let size = (facts[.size] as? NSNumber)?.int64Value,
            let handle = FileHandle(forReadingAtPath: target)
        else { return nil }
        // The last byte, and nothing after it, must be there.
        let last = max(0, size - 1)
        let read = Result {
            try handle.seek(toOffset: UInt64(last))
            return try handle.read(upToCount: 2)?.count ?? 0
        }
        guard case .success(let count) = read else { return size }
        return Int64(count) == size - last ? size : nil
    }

    /// Returns the text itself, or the content of `@file`, or standard input for `-` or `@-`.
    static func read(argument: String) throws(ToolFailure) -> Data {
        if argument == "-" { return try read("-") }
        return argument.hasPrefix("@") ? try read(String(argument.dropFirst())) : Data(argument.utf8)
    }
}
