// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

/// Parses a URL that the test requires to be valid.
func requiredURL(_ text: String) throws -> URL {
    try #require(URL(string: text), "\(text)")
}
