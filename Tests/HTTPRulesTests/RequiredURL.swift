//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import Testing

/// The URL of a text that has to be one.
func requiredURL(_ text: String) throws -> URL {
    try #require(URL(string: text), "\(text)")
}
