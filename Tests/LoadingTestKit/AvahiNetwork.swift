// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Runs suites of this test program in their own network namespace, with Avahi's daemon on a private system bus; only root can do
/// this.
package enum AvahiNetwork {
    package static let host = "peer"

    /// Runs a suite in a new network namespace.
    ///
    /// - Parameters:
    ///   - suite: The name of the suite.
    ///   - hasDaemon: Whether Avahi's daemon runs on the bus.
    /// - Throws: The output of a failed run.
    package static func run(_ suite: String, hasDaemon: Bool = true) async throws {
        let folder = try TemporaryDirectory()
        try folder.write(Data(bus.utf8), to: "bus.conf")
        try folder.write(Data(daemon.utf8), to: "avahi.conf")
        let (dbus, avahi) = (
            try ServerProcess.program("dbus-daemon", package: "dbus"),
            try ServerProcess.program("avahi-daemon", package: "avahi-daemon")
        )
        // Each daemon's command returns when the daemon is ready. The process namespace ends the daemons together with the test
        // program.
        let start =
            "set -e; mount -t tmpfs none /run; mkdir /run/avahi-daemon; ip link set lo up; cd '\(folder.path)';"
            + " \(dbus) --config-file=bus.conf --fork 2>/dev/null;"
            + (hasDaemon ? " \(avahi) --daemonize --file=avahi.conf --no-drop-root --no-chroot --no-rlimits;" : "")
            + " exec \"$@\""
        try await SeparateProcess.run(
            suite, environment: ["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/run/bus"],
            wrapper: ["/usr/bin/env", "unshare", "-n", "-m", "-p", "--fork", "--mount-proc", "/bin/sh", "-c", start, "sh"])
    }

    /// Publishes a service of this host until the returned process is stopped.
    ///
    /// - Parameters:
    ///   - name: The instance name; the type is `_echo._tcp`.
    ///   - port: The port of the service.
    ///   - text: The entries of its TXT record.
    /// - Returns: The process, which has published the service.
    /// - Throws: An error if the process does not start.
    package static func publish(_ name: String, port: Int, text: [String] = []) async throws -> ServerProcess {
        let program = try ServerProcess.program("avahi-publish", package: "avahi-utils")
        let address = ProcessInfo.processInfo.environment["DBUS_SYSTEM_BUS_ADDRESS"] ?? ""
        return try await ServerProcess.start(
            ["/usr/bin/env", "DBUS_SYSTEM_BUS_ADDRESS=\(address)", program, "-s", name, "_echo._tcp", "\(port)"] + text
        ) { $0.contains("Established") }.0
    }

    private static let daemon = """
        [server]
        host-name=\(host)
        use-ipv4=yes
        use-ipv6=no
        allow-interfaces=lo
        [publish]
        publish-workstation=no
        publish-hinfo=no
        """

    private static let bus = """
        <busconfig>
          <type>system</type>
          <listen>unix:path=/run/bus</listen>
          <auth>EXTERNAL</auth>
          <policy context="default">
            <allow user="*"/><allow own="*"/><allow send_type="method_call"/><allow send_destination="*"/><allow receive_sender="*"/>
          </policy>
        </busconfig>
        """
}
