// SPDX-License-Identifier: Apache-2.0

/// A Secret Service provided by GNOME Keyring: unlocked, on a private session bus.
package enum KeyringSession {
    /// Runs a suite of this test program, and the programs that it starts, with this service.
    package static func run(_ suite: String) async throws {
        let home = try ServerDirectory()
        let dbus = try ServerProcess.program("dbus-run-session", package: "dbus-daemon")
        let keyring = try ServerProcess.program("gnome-keyring-daemon", package: "gnome-keyring")
        // The daemon unlocks the keyring. Its command returns when the keyring is ready, and the daemon ends with the bus.
        let script = #"printf 'master\n' | "$0" --unlock --components=secrets >/dev/null && exec "$@""#
        try await SeparateProcess.run(
            suite, environment: environment(home), wrapper: [dbus, "--", "/bin/sh", "-c", script, keyring]
        )
    }

    /// An environment without the user's bus and display, and with a home whose path is short enough for socket paths.
    package static func environment(_ home: ServerDirectory) -> [String: String] {
        [
            "HOME": home.path, "XDG_DATA_HOME": home.path + "/data", "XDG_CONFIG_HOME": home.path + "/config",
            "XDG_CACHE_HOME": home.path + "/cache", "XDG_RUNTIME_DIR": home.path, "DBUS_SESSION_BUS_ADDRESS": "",
            "DISPLAY": "", "WAYLAND_DISPLAY": "",
        ]
    }
}
