// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Writes messages to standard error, and not the data that the user requests.
enum StandardError {
    static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

    /// Redirects all further messages to a file, or with `-` to standard output.
    static func move(to path: String) throws(ToolFailure) {
        let isFile = path != "-"
        let descriptor = isFile ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666) : STDOUT_FILENO
        guard descriptor >= 0, dup2(descriptor, STDERR_FILENO) >= 0 else {
            throw ToolFailure.system(23, "cannot write to \(path)")
        }
        if isFile { close(descriptor) }
    }

    static func print(_ line: String) {
        write(line + "\n")
    }

    static func write(_ text: String) {
        // An error of standard error itself cannot be reported to the user.
        try? FileHandle.standardError.write(contentsOf: Data(text.utf8))
    }
}
