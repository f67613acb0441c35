//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// Where a process that a test starts keeps its data.
enum TestHome {
    /// Has this process keep its data below a folder; to be called before it asks for any.
    static func settle(in home: String) {
        setenv("HOME", home, 1)
        setenv("XDG_DATA_HOME", home + "/data", 1)
        setenv("XDG_CACHE_HOME", home + "/cache", 1)
    }
}
