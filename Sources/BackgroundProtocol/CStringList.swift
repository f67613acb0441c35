// SPDX-License-Identifier: Apache-2.0

import LibC

/// Argument lists and environments for C functions.
package enum CStringList {
    /// Calls `body` with the strings, terminated by NULL.
    package static func with<Value>(_ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Value) -> Value
    {
        let copies: [UnsafeMutablePointer<CChar>?] = strings.map { strdup($0) } + [nil]
        defer { for copy in copies { free(copy) } }
        return copies.withUnsafeBufferPointer { buffer in
            guard let start = buffer.baseAddress else { return withUnsafePointer(to: nil) { body($0) } }
            return body(start)
        }
    }
}
