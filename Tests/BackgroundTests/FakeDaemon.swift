// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import Foundation
import LoadingTestKit

#if canImport(Glibc)
import Glibc
#endif

/// Listens in place of the daemon, and sends what a test tells it to.
final class FakeDaemon: Sendable {
    /// A connection as the daemon sees it.
    struct Visit: Sendable {
        var messages: [ClientMessage] = []
        var isOver = false
    }

    let place: DaemonPlace
    private let folder: TemporaryDirectory
    private let listener: CInt
    private let visits = Watched<[Visit]>([])
    private let sockets = Watched<[CInt]>([])

    /// Starts to listen; `answer` returns the replies to a message on the connection with a number, or nil to end the connection.
    ///
    /// The fake daemon takes over the socket's path in the runtime folder `runtime`, or uses a folder of its own.
    init(in runtime: String? = nil, _ answer: @escaping @Sendable (ClientMessage, Int) -> [DaemonMessage]?) throws {
        folder = try TemporaryDirectory(in: URL(fileURLWithPath: "/tmp"))
        place = DaemonPlace(environment: ["XDG_RUNTIME_DIR": runtime ?? folder.path, "XDG_STATE_HOME": folder.path])
        guard place.prepare() == nil else { throw PlaceFailure("no place at \(place.directory)") }
        listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let path = Array(place.socket.utf8)
        unlink(place.socket)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        let result = withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0, listen(listener, 16) == 0 else { throw PlaceFailure("bind: errno \(errno)") }
        Thread.detachNewThread { [listener, visits, sockets] in
            while case let socket = accept(listener, nil, nil), socket >= 0 {
                let number = visits.change { visits in
                    visits.append(Visit())
                    return visits.count - 1
                }
                sockets.change { $0.append(socket) }
                Thread.detachNewThread {
                    Self.serve(socket, number, visits, answer)
                    sockets.change { $0[number] = -1 }
                    close(socket)
                    visits.change { $0[number].isOver = true }
                }
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
        for socket in sockets.read({ $0 }) where socket >= 0 { shutdown(socket, Int32(SHUT_RDWR)) }
    }

    private static func serve(
        _ socket: CInt, _ number: Int, _ visits: Watched<[Visit]>,
        _ answer: @Sendable (ClientMessage, Int) -> [DaemonMessage]?
    ) {
        var reader = FrameReader(limit: FrameReader.limit)
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while case let count = recv(socket, &buffer, buffer.count, 0), count > 0 {
            reader.append(buffer.prefix(count))
            while let payload = try? reader.next(), let message = try? MessageCoding.decodeClientMessage(payload) {
                visits.change { $0[number].messages.append(message) }
                let answers = answer(message, number)
                if answers == nil { shutdown(socket, Int32(SHUT_RDWR)) }
                for answer in answers ?? [] { say(answer, socket) }
            }
        }
    }

    private static func say(_ message: DaemonMessage, _ socket: CInt) {
        guard let payload = try? MessageCoding.encode(message) else { return }
        let frame = FrameReader.frame(payload)
        _ = send(socket, frame, frame.count, Int32(MSG_NOSIGNAL))
    }

    /// Ends a connection.
    func end(_ number: Int) { _ = shutdown(sockets.read { $0[number] }, Int32(SHUT_RDWR)) }

    /// Waits until `pick` returns a value for the state of a connection.
    @discardableResult
    func waitForVisit<Found: Sendable>(_ number: Int, _ pick: @escaping @Sendable (Visit) -> Found?) async throws -> Found {
        try await visits.value { $0.count > number ? pick($0[number]) : nil }
    }

    var visitCount: Int { visits.read { $0.count } }
}
