//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

extension URLSessionConfiguration {
    /// The names of default header fields that requests are sent without, unless they have the field themselves; default empty.
    ///
    /// The defaults are `Accept`, `Accept-Encoding`, `Accept-Language`, `User-Agent`, and the `Content-Type` of a POST that has a body.
    ///
    /// Not in Apple's API.
    public var omittedHeaders: Set<String> {
        get { get { $0.omittedHeaders } }
        set { set { $0.omittedHeaders = newValue } }
    }
}
