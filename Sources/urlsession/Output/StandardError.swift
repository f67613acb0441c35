//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// Where everything goes that is not the response's body.
enum StandardError {
    static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

    static func print(_ line: String) {
        write(line + "\n")
    }

    static func write(_ text: String) {
        // Nobody is left to be told when standard error itself is gone.
        try? FileHandle.standardError.write(contentsOf: Data(text.utf8))
    }
}
