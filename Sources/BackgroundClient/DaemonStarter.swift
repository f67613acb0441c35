// SPDX-License-Identifier: Apache-2.0

package import BackgroundProtocol
import CLoadingSystem
internal import FoundationEssentials
import LibC
package import LoadingModel

/// Finds and starts the daemon's program.
///
/// These locations are searched in order: the path in the environment variable `URLSESSIOND`, the program's own folder,
/// `PREFIX/libexec` if the program is in `PREFIX/bin`, `/usr/local/libexec` and `/usr/libexec`, and the folders in `PATH`.
package enum DaemonStarter {
    /// The idle time, in seconds, after which a daemon that the library started ends.
    private static let idleLimit = 30

    /// The environment of this process when its first session was created.
    ///
    /// Later reads, on the library's own threads, could race with changes by the app.
    package static let environment = ProcessInfo.processInfo.environment

    package static func program(environment: [String: String] = environment) -> String? {
        if let named = environment["URLSESSIOND"], !named.isEmpty { return isProgram(named) ? named : nil }
        var folders: [String] = []
        if let own = executable() {
            let folder = parent(own)
            folders = [folder, parent(folder) + "/libexec"]
        }
        folders += ["/usr/local/libexec", "/usr/libexec"]
        folders += (environment["PATH"] ?? "").split(separator: ":").map(String.init).filter { $0.hasPrefix("/") }
        return folders.lazy.map { $0 + "/urlsessiond" }.first(where: isProgram)
    }

    /// Starts the daemon; if several daemons are started at the same time, all but one end.
    ///
    /// - Returns: The daemon's report of its start.
    package static func start(_ place: DaemonPlace, replacing: Bool = false) throws(LoadError) -> StartReport {
        guard let program = program(environment: environment) else {
            let named = environment["URLSESSIOND"].map { "URLSESSIOND names \($0), which is not an executable file" }
            throw LoadError(
                .backgroundSessionDisconnected,
                (named
                    ?? "background sessions need the program urlsessiond, which was not found beside the program, in libexec or in PATH")
                    + "; install it with `make install`, or let the package depend on the product urlsessiond"
            )
        }
        var arguments = [program, "--idle-exit", String(idleLimit)]
        if replacing { arguments.append("--replace") }
        let variables = environment.filter { isPassedOn($0.key) }.merging([StartupMessage.variable: "1"]) { $1 }
        let logged = StartReport.size(of: place.log)
        var report: CInt = -1
        let result = CStringList.with(arguments) { arguments in
            CStringList.with(variables.map { "\($0.key)=\($0.value)" }) { environment in
                cls_start_daemon(program, arguments, environment, "/", place.log, &report, nil)
            }
        }
        guard result == 0 else {
            throw LoadError(
                .backgroundSessionDisconnected, "cannot start \(program): \(String(cString: strerror(-result)))")
        }
        return StartReport(report, log: place.log, logged: logged)
    }

    /// Whether an environment variable is passed on to the daemon, which serves all programs and not only the program that starts
    /// it.
    private static func isPassedOn(_ name: String) -> Bool {
        [
            "HOME", "USER", "LOGNAME", "PATH", "LANG", "TZ", "TMPDIR", "DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS",
            "KRB5_CONFIG", "KRB5CCNAME", "LD_LIBRARY_PATH",
        ].contains(name) || name.hasPrefix("XDG_") || name.hasPrefix("LC_") || name.hasPrefix("SWIFT_BACKTRACE")
            || name.hasPrefix("URLSESSIOND")
    }

    /// Returns the executable file of this process.
    package static func executable() -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer in
            guard let start = buffer.baseAddress else { return nil }
            let count = readlink("/proc/self/exe", start, buffer.count)
            guard count > 0, count < buffer.count else { return nil }
            let path = String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
            // The kernel marks a file that was replaced, as by an upgrade; the daemon also goes by the path alone.
            return path.hasSuffix(" (deleted)") ? String(path.dropLast(10)) : path
        }
    }

    private static func parent(_ path: String) -> String {
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "" }
        return String(path[..<slash])
    }

    static func isProgram(_ path: String) -> Bool {
        var facts = stat()
        return stat(path, &facts) == 0 && facts.st_mode & S_IFMT == S_IFREG && access(path, X_OK) == 0
    }
}
