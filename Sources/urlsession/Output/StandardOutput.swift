// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Writes the requested data to standard output.
enum StandardOutput {
    static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Writes data.
    ///
    /// If the reader has closed the pipe, as in `list | head`, SIGPIPE ends the program without a message, as it ends other shell
    /// tools.
    ///
    /// - Parameters:
    ///   - data: The data to write.
    ///   - advice: The advice to the user when binary data is refused because standard output is a terminal; nil writes any data.
    /// - Throws: If the data cannot be written, or is refused.
    static func write(_ data: Data, advice: String? = nil) throws(ToolFailure) {
        do {
            try BodySink(path: nil, refusesBinaryOnTerminal: advice != nil, advice: advice ?? "").write(data)
        } catch {
            if error.isClosedPipe {
                signal(SIGPIPE, SIG_DFL)
                raise(SIGPIPE)
            }
            throw error
        }
    }

    static func write(_ text: String) throws(ToolFailure) {
        try write(Data(text.utf8))
    }
}
