//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// Where what was asked for goes.
enum StandardOutput {
    static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Where the reader is gone, as after `list | head`, this ends the program as the shell's own tools end: by SIGPIPE, without a word.
    ///
    /// - Parameters:
    ///   - data: What to write.
    ///   - advice: What to do instead where it is binary, and standard output a terminal; nil writes it all the same.
    /// - Throws: Where it is not written.
    static func write(_ data: Data, advice: String? = nil) throws(ToolFailure) {
        do {
            try BodySink(path: nil, sparesTerminal: advice != nil, advice: advice ?? "").write(data)
        } catch {
            if error.isClosedPipe {
                signal(SIGPIPE, SIG_DFL)
                raise(SIGPIPE)
            }
            throw ToolFailure(23, error.message)
        }
    }

    static func write(_ text: String) throws(ToolFailure) {
        try write(Data(text.utf8))
    }
}
