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

/// What options read: files, and standard input where the name is `-`.
enum InputFile {
    /// What was read once and is wanted again: standard input, and files of header fields, which may be pipes.
    private static let known = Mutex<[String: Data]>([:])

    /// The same as ``read(_:)``, which then has it for good.
    static func readOnce(_ path: String) throws(ToolFailure) -> Data {
        if let data = known.withLock({ $0[path] }) { return data }
        let data = try read(path)
        known.withLock { $0[path] = data }
        return data
    }

    /// The same as ``read(_:)``; standard input is empty after that, as what was read is no content of a request.
    static func take(_ path: String) throws(ToolFailure) -> Data {
        let data = try read(path)
        if path == "-" { known.withLock { $0[path] = Data() } }
        return data
    }

    /// Whether standard input was read, by whatever option.
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
        // By a handle: what a shell's `<(…)` names is a pipe, and has no length.
        guard let handle = FileHandle(forReadingAtPath: path), let data = try? handle.readToEnd() ?? Data() else {
            throw ToolFailure(26, "cannot read \(path)")
        }
        return data
    }

    /// The text itself, `@file`, or standard input by `-` or `@-`.
    static func read(argument: String) throws(ToolFailure) -> Data {
        if argument == "-" { return try read("-") }
        return argument.hasPrefix("@") ? try read(String(argument.dropFirst())) : Data(argument.utf8)
    }
}
