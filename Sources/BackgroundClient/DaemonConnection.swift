// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import CLoadingSystem
import LibC
import Synchronization
import SystemThreads

/// A connection to the daemon.
///
/// When `send` returns, the message has left the process, so that it arrives even if this process ends immediately afterwards.
final class DaemonConnection: Sendable {
    /// How many seconds a send to the daemon may block, and how many the daemon may take to send its first message.
    static let patience = 20
    private static let bufferSize = 256 << 10

    private let descriptor: CInt
    /// The path of the socket.
    private let path: String
    /// The process that last began to listen: the daemon, or a service manager.
    let process: Int32
    /// Whether a service manager listens, which starts the daemon for the connection.
    let isManagers: Bool
    /// Where the daemon's log is: in a file if the library started the daemon, otherwise in the journal.
    let log: String
    /// The time on the monitor's clock before the connection was opened.
    private let opened: Double
    /// Keeps the bytes of concurrent messages apart.
    private let sending = Mutex(())

    private init(_ socket: CInt, _ path: String, _ process: Int32, opened: Double) {
        self.descriptor = socket
        self.path = path
        self.process = process
        self.opened = opened
        // The daemon listens on the service manager's socket when it has started; if it ended, it is still the one that last listened.
        isManagers = Self.facts("comm", of: process) != "urlsessiond\n"
        let isService = isManagers || Self.facts("cgroup", of: process).contains("/\(ServiceUnit.service)\n")
        log = isService ? ServiceUnit.log : DaemonPlace.log(besideSocket: path)
    }

    deinit { _ = cls_close(descriptor) }

    /// Connects to the daemon that listens at a place; if no daemon listens there, connects to the daemon that uses the place's
    /// state but listens elsewhere.
    ///
    /// - Parameters:
    ///   - place: The place where the daemon is expected.
    ///   - isUsable: Whether the place's folder belongs to the user.
    ///   - patience: How long, in seconds, a send may block.
    /// - Returns: Nil if no daemon listens.
    static func open(_ place: DaemonPlace, isUsable: Bool = true, patience: Int = patience) -> DaemonConnection? {
        if isUsable, let found = connect(place.socket, patience) { return found }
        // The socket of a daemon that has ended has no listener.
        guard let noted = place.stateDirectory.flatMap(DaemonPlace.notedSocket), noted != place.socket else { return nil }
        return connect(noted, patience)
    }

    private static func connect(_ path: String, _ patience: Int) -> DaemonConnection? {
        let opened = Monitor.clock
        let socket = cls_connect(path, CInt(patience))
        guard socket >= 0 else { return nil }
        var peer = cls_peer()
        // If other users could write to the folder earlier, the listener may belong to another user.
        guard cls_peer(socket, &peer) == 0, peer.user == geteuid() else {
            _ = cls_close(socket)
            return nil
        }
        cls_limit_receiving(socket, 1)
        return DaemonConnection(socket, path, peer.process, opened: opened)
    }

    /// Returns the content of a file about a process; empty if the process has ended.
    private static func facts(_ name: String, of process: Int32) -> String {
        String(decoding: SmallFile.contents(of: "/proc/\(process)/\(name)", limit: 4096) ?? [], as: UTF8.self)
    }

    /// Why the service manager that listens for the daemon could not start it since the connection was opened; nil if it still may.
    ///
    /// Takes up to a second.
    func serviceFailure() -> ServiceUnit.Failure? {
        isManagers ? ServiceUnit.failure(ofSocket: path, since: opened) : nil
    }

    /// Sends a message; successive messages arrive in order.
    ///
    /// If the daemon does not accept the message, the connection is closed, which the receiving thread notices.
    func send(_ payload: [UInt8]) {
        let frame = FrameReader.frame(payload)
        let result = sending.withLock { _ in frame.withUnsafeBytes { cls_send_all(descriptor, $0.baseAddress, $0.count) } }
        if result != 0 { close() }
    }

    /// Allows the daemon to be silent, since an idle daemon sends nothing; this applies from the next period of silence.
    func removeTimeout() { cls_limit_receiving(descriptor, 0) }

    /// Passes the daemon's messages to a handler, and returns when the connection is closed.
    ///
    /// - Parameters:
    ///   - endures: Called after each second of silence with the number of such seconds in a row; returns whether to keep waiting.
    ///   - handler: Called with each message.
    /// - Returns: Whether the connection is closed because the daemon was silent for too long.
    @discardableResult
    func receive(enduring endures: (Int) -> Bool, _ handler: (DaemonMessage) -> Void) -> Bool {
        var reader = FrameReader(limit: FrameReader.programLimit)
        var buffer = [UInt8](repeating: 0, count: Self.bufferSize)
        var silentSeconds = 0
        while true {
            let count = buffer.withUnsafeMutableBytes { cls_receive_some(descriptor, $0.baseAddress, $0.count) }
            if count == -Int64(EAGAIN) {
                silentSeconds += 1
                if endures(silentSeconds) { continue }
            }
            guard count > 0 else { return count == -Int64(EAGAIN) }
            silentSeconds = 0
            do {
                reader.append(buffer.prefix(Int(count)))
                while let payload = try reader.next() { handler(try MessageCoding.decodeDaemonMessage(payload)) }
            } catch {
                // The message is of an unknown version, or the peer is not the daemon: the connection is unusable.
                close()
                return false
            }
        }
    }

    /// Closes the connection; sent messages still arrive.
    func close() { cls_end_connection(descriptor) }
}
