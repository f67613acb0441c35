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
    static func write(_ data: Data) throws(ToolFailure) {
        do {
            try BodySink(path: nil).write(data)
        } catch {
            throw ToolFailure(23, error.message)
        }
    }

    static func write(_ text: String) throws(ToolFailure) {
        try write(Data(text.utf8))
    }
}
