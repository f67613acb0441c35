//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// What options read: files, and standard input where the name is `-`.
enum InputFile {
    static func read(_ path: String) throws(ToolFailure) -> Data {
        if path == "-" {
            do {
                return try FileHandle.standardInput.readToEnd() ?? Data()
            } catch {
                throw ToolFailure(26, "cannot read standard input")
            }
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
