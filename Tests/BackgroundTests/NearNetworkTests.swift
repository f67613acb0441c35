// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

#if canImport(Glibc)
import Glibc
#endif

/// Without a default route, background transfers reach local hosts just as loads within the program do.
@Suite(.enabled(if: geteuid() == 0, "it needs a network of its own"), .timeLimit(.minutes(2)))
struct NearNetworkTests {
    @Test func `background transfers begin without a default route`() async throws {
        try await SeparateProcess.run(
            "NoDefaultRouteTests", environment: [:],
            wrapper: ["/usr/bin/env", "unshare", "-n", "-m", "/bin/sh", "-c", Self.setUp, "sh"])
    }

    /// 10.77.1.1 is a host of this network with the name `near`.
    private static let setUp = #"""
        set -e
        ip link set lo up
        ip link add near0 type veth peer name near1
        ip addr add 10.77.1.1/24 dev near0
        ip link set near0 up
        ip link set near1 up
        hosts=$(mktemp)
        echo 127.0.0.1 localhost > $hosts
        echo 10.77.1.1 near >> $hosts
        mount --bind $hosts /etc/hosts
        exec "$@"
        """#
}
