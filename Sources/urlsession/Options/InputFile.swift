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

    /// Returns the text itself, or the content of `@file`, or standard input for `-` or `@-`.
    static func read(argument: String) throws(ToolFailure) -> Data {
        if argument == "-" { return try read("-") }
        return argument.hasPrefix("@") ? try read(String(argument.dropFirst())) : Data(argument.utf8)
    }
}
