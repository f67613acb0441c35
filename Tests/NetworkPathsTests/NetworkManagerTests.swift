// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingModel
import LoadingTestKit
import Testing

@testable import NetworkPaths

/// NetworkManager, simulated by python-dbusmock on a separate bus.
private final class ManagerMock: Sendable {
    let address: String
    private let daemon: ServerProcess
    private let folder: TemporaryDirectory

    init() async throws {
        folder = try TemporaryDirectory()
        address = "unix:path=" + folder.path + "/bus"
        let program = try ServerProcess.program("dbus-daemon", package: "dbus")
        daemon = try await ServerProcess.start([program, "--session", "--nofork", "--print-address", "--address=" + address]) {
            $0.contains("unix:path=")
        }.0
    }

    deinit { daemon.stop() }

    /// Serves the object with these properties until it is stopped; a line on standard output reports that it is ready.
    func serve(metered: Int, connectivity: Int = 4, answersAfter seconds: Double = 0) async throws -> ServerProcess {
        let script = """
            import dbus, dbus.service, time, sys
            from dbus.mainloop.glib import DBusGMainLoop
            from gi.repository import GLib
            DBusGMainLoop(set_as_default=True)
            bus = dbus.bus.BusConnection("\(address)")
            NAME = "org.freedesktop.NetworkManager"
            class Manager(dbus.service.Object):
                values = {"Metered": dbus.UInt32(\(metered)), "Connectivity": dbus.UInt32(\(connectivity))}
                @dbus.service.method("org.freedesktop.DBus.Properties", in_signature="ss", out_signature="v")
                def Get(self, interface, name):
                    time.sleep(\(seconds))
                    return self.values[name]
                @dbus.service.signal("org.freedesktop.DBus.Properties", signature="sa{sv}as")
                def PropertiesChanged(self, interface, changed, invalidated): pass
                @dbus.service.method("test.Control", in_signature="u")
                def SetMetered(self, value):
                    self.values["Metered"] = dbus.UInt32(value)
                    self.PropertiesChanged(NAME, {"Metered": dbus.UInt32(value)}, [])
            manager = Manager(bus, "/org/freedesktop/NetworkManager")
            owned = dbus.service.BusName(NAME, bus)
            print("ready", flush=True)
            GLib.MainLoop().run()
            """
        let python = "/usr/bin/python3"
        return try await ServerProcess.start([python, "-c", script]) { $0.contains("ready") }.0
    }

    func setMetered(_ value: Int) async throws {
        let script = """
            import dbus
            bus = dbus.bus.BusConnection("\(address)")
            bus.get_object("org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager").SetMetered(\
            dbus.UInt32(\(value)), dbus_interface="test.Control")
            """
        _ = try await ServerProcess.run(ServerProcess.Command(["/usr/bin/python3", "-c", script], output: .nothing))
    }
}

/// These tests need a default route on the machine, over any network.
@Suite(.timeLimit(.minutes(2)))
struct NetworkManagerTests {
    private func watch(_ mock: ManagerMock) -> (monitor: SystemPathMonitor, expensive: Watched<Bool?>) {
        let monitor = SystemPathMonitor(bus: mock.address)
        let expensive = Watched<Bool?>(nil)
        _ = monitor.watch { path in expensive.change { $0 = path.interfaces.contains(where: \.isExpensive) } }
        return (monitor, expensive)
    }

    @Test(arguments: [(1, true), (2, false), (3, true), (4, false), (0, false), (77, false)])
    func `a metered network is expensive`(metered: Int, isExpensive: Bool) async throws {
        let mock = try await ManagerMock()
        let manager = try await mock.serve(metered: metered)
        defer { manager.stop() }
        let (monitor, expensive) = watch(mock)
        #expect(try await expensive.value { $0 } == isExpensive)
        _ = monitor
    }

    @Test func `changes are reported, and so are start and end of NetworkManager`() async throws {
        let mock = try await ManagerMock()
        let (monitor, expensive) = watch(mock)
        #expect(try await expensive.value { $0 } == false)
        let manager = try await mock.serve(metered: 1)
        _ = try await expensive.value { $0 == true ? true : nil }
        try await mock.setMetered(2)
        _ = try await expensive.value { $0 == false ? true : nil }
        try await mock.setMetered(3)
        _ = try await expensive.value { $0 == true ? true : nil }
        manager.stop(SIGKILL)
        _ = try await expensive.value { $0 == false ? true : nil }
        _ = monitor
    }

    @Test func `a NetworkManager that does not respond blocks nothing`() async throws {
        let mock = try await ManagerMock()
        let manager = try await mock.serve(metered: 1, answersAfter: 600)
        defer { manager.stop(SIGKILL) }
        let (monitor, expensive) = watch(mock)
        #expect(try await expensive.value { $0 } == false)
        _ = monitor
    }

    @Test func `no connectivity according to NetworkManager counts as offline`() async throws {
        for (connectivity, isOffline) in [(1, true), (2, false), (3, false), (4, false), (0, false)] {
            let mock = try await ManagerMock()
            let manager = try await mock.serve(metered: 2, connectivity: connectivity)
            let (monitor, expensive) = watch(mock)
            _ = try await expensive.value { $0 }
            #expect(monitor.isOffline == isOffline, "\(connectivity)")
            manager.stop(SIGKILL)
        }
    }

    @Test func `a missing bus is ignored`() async throws {
        let monitor = SystemPathMonitor(bus: "unix:path=/nowhere/bus")
        let known = Watched(false)
        _ = monitor.watch { _ in known.change { $0 = true } }
        _ = try await known.value { $0 ? true : nil }
    }
}
