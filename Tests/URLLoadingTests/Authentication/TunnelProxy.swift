// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import LoadingTestKit

/// A proxy that opens tunnels (CONNECT), with a blocking thread for each connection; it shares no code with the client under test.
final class TunnelProxy: Sendable {
    /// One CONNECT, or any other request that arrived instead.
    struct Demand: Sendable {
        var connection: Int
        /// The number of the request on its connection, from 0.
        var number: Int
        var head: String

        var target: String { String(head.split(separator: " ").dropFirst().first ?? "") }
        var method: String { String(head.prefix { $0 != " " }) }

        func values(of name: String) -> [String] {
            head.components(separatedBy: "\r\n").dropFirst().compactMap { line in
                guard let colon = line.firstIndex(of: ":"), line[..<colon].lowercased() == name.lowercased() else { return nil }
                return line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
            }
        }

        var authorization: String? { values(of: "Proxy-Authorization").first }

        /// The reply of a ``ScriptedServer`` script to this request; a 200 opens the tunnel.
        func answer(by script: (RecordedRequest) -> ScriptedReply, to port: Int) -> Answer {
            var request = RecordedRequest()
            request.connection = connection
            request.method = method
            request.target = target
            request.headers = values(of: "Proxy-Authorization").map { ("Proxy-Authorization", $0) }
            guard let bytes = script(request).effects.first?.bytes else { return .say("") }
            let text = String(decoding: bytes, as: UTF8.self)
            guard text.hasPrefix("HTTP/1.1 200") else { return .say(text) }
            let info = text.components(separatedBy: "\r\n").first { $0.hasPrefix("Proxy-Authentication-Info:") }
            return .tunnel(to: port, fields: info.map { $0 + "\r\n" } ?? "")
        }
    }

    enum Answer: Sendable {
        /// Replies 200, followed by `extra`, and then connects the client to a port of 127.0.0.1.
        case tunnel(to: Int, extra: String = "", fields: String = "")
        case say(String, closes: Bool = false)
    }

    private struct State: Sendable {
        var demands: [Demand] = []
        var connections = 0
        var descriptors: Set<Int32> = []
        var isStopped = false
    }

    let port: Int
    private let listener: Int32
    private let state = Watched(State())
    private let answer: @Sendable (Demand) -> Answer

    init(_ answer: @escaping @Sendable (Demand) -> Answer) throws {
        self.answer = answer
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = Self.loopback(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(listener, pointer, length) == 0 && Glibc.listen(listener, 64) == 0
                    && getsockname(listener, pointer, &length) == 0
            }
        }
        port = Int(UInt16(bigEndian: address.sin_port))
        guard isBound else { throw POSIXError(.EADDRINUSE) }
        Thread.detachNewThread { [self] in listen() }
    }

    var demands: [Demand] { state.read(\.demands) }
    var connectionCount: Int { state.read(\.connections) }

    /// Waits until at least `count` requests have arrived.
    func waitForDemands(_ count: Int) async throws { try await state.value { $0.demands.count >= count ? () : nil } }

    /// Waits until no accepted connection is open.
    func waitForAllClosed() async throws { try await state.value { $0.descriptors.isEmpty ? () : nil } }

    func stop() {
        let open = state.change { state in
            state.isStopped = true
            return state.descriptors
        }
        shutdown(listener, Int32(SHUT_RDWR))
        for descriptor in open { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }

    private func listen() {
        while true {
            let descriptor = Glibc.accept(listener, nil, nil)
            guard descriptor >= 0 else { break }
            let number = state.change { state in
                state.connections += 1
                state.descriptors.insert(descriptor)
                return state.connections - 1
            }
            Thread.detachNewThread { [self] in
                serve(descriptor, number)
                state.change { _ = $0.descriptors.remove(descriptor) }
                close(descriptor)
            }
        }
        close(listener)
    }

    private func serve(_ client: Int32, _ connection: Int) {
        var number = 0
        while let head = Self.head(client) {
            let demand = Demand(connection: connection, number: number, head: head)
            number += 1
            state.change { $0.demands.append(demand) }
            switch answer(demand) {
            case .say(let text, let closes):
                guard Self.send(Array(text.utf8), client), !closes else { return }
            case .tunnel(let port, let extra, let fields):
                let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
                defer { close(server) }
                var address = Self.loopback(port: port)
                let isOpen = withUnsafePointer(to: &address) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                    }
                }
                guard isOpen, Self.send(Array("HTTP/1.1 200 Connection established\r\n\(fields)\r\n\(extra)".utf8), client) else {
                    return
                }
                return Self.pump(client, server)
            }
        }
    }

    private static func loopback(port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = UInt16(port).bigEndian
        return address
    }

    /// Reads byte by byte, so that nothing after the head is consumed.
    private static func head(_ descriptor: Int32) -> String? {
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while !bytes.suffix(4).elementsEqual([13, 10, 13, 10]) {
            guard recv(descriptor, &byte, 1, 0) == 1 else { return nil }
            bytes.append(byte)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func send(_ bytes: [UInt8], _ descriptor: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    private static func pump(_ one: Int32, _ other: Int32) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            var events = [
                pollfd(fd: one, events: Int16(POLLIN), revents: 0), pollfd(fd: other, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&events, 2, -1) > 0 else { return }
            for (event, to) in zip(events, [other, one]) where event.revents != 0 {
                let count = recv(event.fd, &buffer, buffer.count, 0)
                guard count > 0, send(Array(buffer[..<count]), to) else { return }
            }
        }
    }
}

/// Runs a test with a ``TunnelProxy``.
func withTunnelProxy(
    _ answer: @escaping @Sendable (TunnelProxy.Demand) -> TunnelProxy.Answer, test: (TunnelProxy) async throws -> Void
) async throws {
    let proxy = try TunnelProxy(answer)
    defer { proxy.stop() }
    try await test(proxy)
}

/// The `connectionProxyDictionary` of a proxy for http, https or both.
func proxyDictionary(http: Int? = nil, https: Int? = nil, _ more: [String: Any] = [:]) -> [AnyHashable: Any] {
    var dictionary: [AnyHashable: Any] = [:]
    for (kind, port) in [("HTTP", http), ("HTTPS", https)] {
        guard let port else { continue }
        dictionary[kind + "Enable"] = 1
        dictionary[kind + "Proxy"] = "127.0.0.1"
        dictionary[kind + "Port"] = port
    }
    for (key, value) in more { dictionary[key] = value }
    return dictionary
}
