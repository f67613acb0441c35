//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import BackgroundProtocol
import CLoadingSystem
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// A connection to the daemon.
///
/// What is sent is the system's when the call returns, so that it arrives even if this process ends right after.
final class DaemonConnection: Sendable {
    /// Seconds that a daemon may take to read, and to say its first word, before it counts as dead.
    static let patience = 20
    private static let bufferSize = 256 << 10

    private let descriptor: CInt
    /// The process that listens there: the daemon's, or a service manager's.
    let process: Int32
    /// What the daemon there says, where the library started it.
    let log: String
    /// A message is never among another one's bytes.
    private let sending = Mutex(())

    private init(_ socket: CInt, _ process: Int32, log: String) {
        self.descriptor = socket
        self.process = process
        self.log = log
    }

    deinit { _ = cls_close(descriptor) }

    /// Connects to the daemon of a place, or else to the one that has the state and listens elsewhere.
    ///
    /// - Parameters:
    ///   - place: Where it is looked for.
    ///   - isUsable: Whether the place's folder is the user's own.
    ///   - patience: Seconds of silence after which it counts as dead.
    /// - Returns: Nil where none listens.
    static func open(_ place: DaemonPlace, isUsable: Bool = true, patience: Int = patience) -> DaemonConnection? {
        if isUsable, let found = connect(place.socket, patience) { return found }
        // What is left by one that is gone leads to no listener.
        guard let noted = place.stateDirectory.flatMap(DaemonPlace.notedSocket), noted != place.socket else { return nil }
        return connect(noted, patience)
    }

    private static func connect(_ path: String, _ patience: Int) -> DaemonConnection? {
        let socket = cls_connect(path, CInt(patience))
        guard socket >= 0 else { return nil }
        var peer = cls_peer()
        // In a folder that others could write to once, it may be another user's.
        guard cls_peer(socket, &peer) == 0, peer.user == geteuid() else {
            _ = cls_close(socket)
            return nil
        }
        cls_limit_receiving(socket, CInt(patience))
        return DaemonConnection(socket, peer.process, log: DaemonPlace.log(besideSocket: path))
    }

    /// Calls made one after another arrive in that order.
    ///
    /// A daemon that does not take it ends the connection, which whoever receives finds out.
    func send(_ payload: [UInt8]) {
        let frame = FrameReader.frame(payload)
        let result = sending.withLock { _ in frame.withUnsafeBytes { cls_send_all(descriptor, $0.baseAddress, $0.count) } }
        if result != 0 { close() }
    }

    /// How many seconds of silence are looked at from the next one on; nil for none, as the daemon speaks when it has something to say.
    func limitSilence(_ seconds: Int?) { cls_limit_receiving(descriptor, CInt(seconds ?? 0)) }

    /// Hands over what the daemon says, and returns when the connection is over.
    ///
    /// - Parameters:
    ///   - endures: Whether a silence that became long is no end.
    ///   - handler: Given each message.
    func receive(enduring endures: () -> Bool = { false }, _ handler: (DaemonMessage) -> Void) {
        var reader = FrameReader(limit: FrameReader.programLimit)
        var buffer = [UInt8](repeating: 0, count: Self.bufferSize)
        while true {
            let count = buffer.withUnsafeMutableBytes { cls_receive_some(descriptor, $0.baseAddress, $0.count) }
            if count == -Int64(EAGAIN), endures() { continue }
            guard count > 0 else { return }
            do {
                reader.append(buffer.prefix(Int(count)))
                while let payload = try reader.next() { handler(try MessageCoding.decodeDaemonMessage(payload)) }
            } catch {
                // Another version's, or not the daemon: the connection cannot be gone on with.
                return close()
            }
        }
    }

    /// Ends it; what was sent arrives.
    func close() { cls_end_connection(descriptor) }
}
