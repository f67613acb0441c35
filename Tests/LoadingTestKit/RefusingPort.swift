// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A loopback port that refuses every connection during the lifetime of this object: it is bound, but not listening.
package final class RefusingPort: Sendable {
    package let number: Int
    private let descriptor: Int32

    package init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = LoopbackAddress()
        let isBound = address.call { [descriptor] pointer, length in
            bind(descriptor, pointer, length) == 0 && getsockname(descriptor, pointer, &length) == 0
        }
        number = address.port
        guard isBound == true else { throw ScriptedServer.ScriptError(description: "bind to 127.0.0.1: errno \(errno)") }
    }

    deinit { _ = close(descriptor) }
}
