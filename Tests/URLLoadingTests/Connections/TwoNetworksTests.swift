// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// A machine with two networks, of which the system prefers the cellular one.
@Suite(.enabled(if: geteuid() == 0), .timeLimit(.minutes(2))) struct TwoNetworksTests {
    @Test func `a load that excludes the preferred network uses another network`() async throws {
        let folder = try TemporaryDirectory()
        try folder.write(Data(Self.setUp.utf8), to: "setup.sh")
        // In a separate PID namespace the server ends when the program does.
        try await SeparateProcess.run(
            "MobileFirstTests", environment: ["NSAllowsArbitraryLoads": "YES"],
            wrapper: [
                "/usr/bin/env", "unshare", "-n", "-m", "-p", "--fork", "--mount-proc", "/bin/bash", "-c",
                "cd '\(folder.path)' && . ./setup.sh && exec \"$@\"", "bash",
            ]
        )
    }

    /// `wwan7` and `eth7` both lead to 198.51.100.7 and 2001:db8:7::7; `wwan7` has the lower metric.
    private static let setUp = #"""
        set -e
        mount -t tmpfs none /run
        ip link set lo up
        ip netns add far
        far="ip netns exec far"
        $far ip link set lo up
        $far ip addr add 198.51.100.7/32 dev lo
        $far ip addr add 2001:db8:7::7/128 dev lo
        number=1
        for name in wwan7 eth7; do
            ip link add $name type veth peer name far$number netns far
            ip addr add 10.77.$number.1/24 dev $name
            ip addr add 2001:db8:$number::1/64 dev $name nodad
            $far ip addr add 10.77.$number.2/24 dev far$number
            $far ip addr add 2001:db8:$number::2/64 dev far$number nodad
            ip link set $name up
            $far ip link set far$number up
            ip route add default via 10.77.$number.2 dev $name metric ${number}00
            ip -6 route add default via 2001:db8:$number::2 dev $name metric ${number}00
            mkdir -p net/$name/device
            echo 1 > net/$name/type
            number=2
        done
        echo DEVTYPE=wwan > net/wwan7/uevent
        mount --bind net /sys/class/net
        echo here > page
        for address in 198.51.100.7 2001:db8:7::7; do
            $far python3 -m http.server 8000 --bind $address > /dev/null 2>&1 &
            tries=0
            until $far bash -c "exec 3<>/dev/tcp/$address/8000" 2> /dev/null; do
                tries=$((tries + 1)); [ $tries -lt 2000 ]; read -t 0.01 <> <(:) || true
            done
        done
        set +e
        """#
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("MobileFirstTests")), .timeLimit(.minutes(1))) struct MobileFirstTests {
    private final class Listener: NSObject, URLSessionTaskDelegate, Sendable {
        let place = Delivered<[String]>()

        func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
            place(metrics.transactionMetrics.map { "\($0.localAddress ?? "")\($0.isCellular ? ", cellular" : "")" })
        }
    }

    private func place(_ session: URLSession, _ url: URL) async throws -> [String] {
        let listener = Listener()
        let (data, _) = try await session.data(from: url, delegate: listener)
        #expect(data == Data("here\n".utf8))
        return try await listener.place.value
    }

    @Test(arguments: [("198.51.100.7", "10.77.1.1", "10.77.2.1"), ("[2001:db8:7::7]", "2001:db8:1::1", "2001:db8:2::1")])
    func `the cellular network is used only if it is allowed`(_ host: String, _ mobile: String, _ wired: String) async throws {
        let url = try #require(URL(string: "http://\(host):8000/page"))
        try await withSession { (session) async throws in
            #expect(try await place(session, url) == [mobile + ", cellular"])
        }
        try await withSession {
            $0.allowsCellularAccess = false
        } test: { (session) async throws in
            #expect(try await place(session, url) == [wired])
        }
        // A session that names an excluded interface fails.
        try await withSession {
            $0.allowsCellularAccess = false
            $0.connectionOptions.interfaceName = "wwan7"
        } test: { (session) async throws in
            let error = await expectFailure(.notConnectedToInternet) { try await session.data(from: url) }
            #expect(error?.networkUnavailableReason == .cellular)
        }
        _ = try await ServerProcess.run(
            ServerProcess.Command(["/usr/bin/env", "ip", "link", "set", "eth7", "down"], output: .nothing))
        try await withSession {
            $0.allowsCellularAccess = false
        } test: { (session) async throws in
            let error = await expectFailure(.notConnectedToInternet) { try await session.data(from: url) }
            #expect(error?.networkUnavailableReason == .cellular)
        }
        _ = try await ServerProcess.run(
            ServerProcess.Command(["/usr/bin/env", "sh", "-c", restoring], output: .nothing))
    }

    private let restoring = """
        ip link set eth7 up && ip addr replace 2001:db8:2::1/64 dev eth7 nodad \
        && ip route replace default via 10.77.2.2 dev eth7 metric 200 && ip -6 route replace default via 2001:db8:2::2 dev eth7 metric 200
        """
}
