// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The variables that `Scripts/sanitize` sets, for programs that tests start with a different environment.
package enum SanitizerEnvironment {
    package static let variables = ProcessInfo.processInfo.environment.filter { name, _ in
        ["LD_PRELOAD", "TSAN_OPTIONS", "ASAN_OPTIONS"].contains(name)
    }
}
