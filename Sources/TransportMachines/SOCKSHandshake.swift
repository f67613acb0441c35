// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Asks a SOCKS proxy for a connection: SOCKS 5 (RFC 1928) with or without a password (RFC 1929), SOCKS 4 and 4a.
///
/// Ends with `opened` or `fail`; later events return `[]`.
package struct SOCKSHandshake: Sendable {
    package enum Version: Sendable, Hashable { case four, five }

    package enum Destination: Sendable, Hashable {
        /// A host name, which the proxy looks up.
        case name(String)
        /// 4 or 16 bytes.
        case address([UInt8])
    }

    package enum Event: Sendable, Hashable {
        case started
        case received([UInt8])
        /// The proxy has closed its side of the connection.
        case closed
    }

    package enum Action: Sendable, Hashable {
        case send([UInt8])
        /// From now on the connection leads to the server.
        case opened
        case fail(Failure)
    }

    package enum Failure: Error, Sendable, Hashable {
        /// The request cannot be expressed in this version of SOCKS.
        case unsupportedRequest(String)
        /// The reply is not a SOCKS reply.
        case malformed(String)
        /// The proxy demands a password, or rejects the one that was sent.
        case authenticationFailed(String)
        /// The proxy refuses the connection.
        case refused(String)
        case closed
    }

    private enum Stage: Sendable, Hashable { case idle, method, password, reply, over }

    private let version: Version
    private let destination: Destination
    private let port: UInt16
    private let user: String?
    private let password: String?
    private var stage = Stage.idle
    private var buffer: [UInt8] = []
    /// Whether the server may send first, so that its bytes may follow the proxy's last bytes.
    private let serverMaySpeakFirst: Bool
    /// The server's bytes that followed the proxy's reply.
    package private(set) var earlyBytes: [UInt8] = []

    package init(
        _ version: Version, to destination: Destination, port: UInt16, user: String? = nil, password: String? = nil,
        serverMaySpeakFirst: Bool = false
    ) {
        self.serverMaySpeakFirst = serverMaySpeakFirst
        self.version = version
        self.destination = destination
        self.port = port
        self.user = user
        self.password = password
    }

    package mutating func handle(_ event: Event) -> [Action] {
        guard stage != .over else { return [] }
        do throws(Failure) {
            switch event {
            case .started: return try start()
            case .received(let bytes):
                buffer += bytes
                return try read()
            case .closed: throw .closed
            }
        } catch {
            stage = .over
            return [.fail(error)]
        }
    }

    private mutating func start() throws(Failure) -> [Action] {
        guard stage == .idle else { return [] }
        guard version == .five else {
            stage = .reply
            return [.send(try socks4Request())]
        }
        // Check first that the later messages can be encoded.
        _ = try socks5Request()
        _ = try login()
        stage = .method
        return [.send(user == nil ? [5, 1, 0] : [5, 2, 0, 2])]
    }

    private mutating func read() throws(Failure) -> [Action] {
        switch stage {
        case .idle, .over: throw .malformed("it sent data before it was asked")
        case .method: return try readMethod()
        case .password: return try readPasswordReply()
        case .reply: return version == .five ? try readSOCKS5Reply() : try readSOCKS4Reply()
        }
    }

    // MARK: SOCKS 5

    private mutating func readMethod() throws(Failure) -> [Action] {
        if let first = buffer.first, first != 5 { throw .malformed("it does not speak SOCKS 5") }
        guard let answer = try take(2) else { return [] }
        switch answer[1] {
        case 0:
            stage = .reply
            return [.send(try socks5Request())]
        case 2 where user != nil:
            stage = .password
            return [.send(try login())]
        case 0xFF:
            throw .authenticationFailed(
                user == nil ? "it requires a user name and password" : "it accepts neither anonymous access nor a password")
        default: throw .malformed("it chose an authentication method (\(answer[1])) that was not offered")
        }
    }

    /// Some proxies send the SOCKS version instead of the version of the subnegotiation.
    private mutating func readPasswordReply() throws(Failure) -> [Action] {
        if let first = buffer.first, first != 1, first != 5 { throw .malformed("its reply to the password is malformed") }
        guard let verdict = try take(2) else { return [] }
        guard verdict[1] == 0 else { throw .authenticationFailed("it rejected the password") }
        stage = .reply
        return [.send(try socks5Request())]
    }

    private mutating func readSOCKS5Reply() throws(Failure) -> [Action] {
        if let first = buffer.first, first != 5 { throw .malformed("its reply is malformed") }
        // A refusal may be truncated.
        guard buffer.count > 1 else { return [] }
        guard buffer[1] == 0 else { throw .refused(Self.reason(buffer[1])) }
        guard buffer.count > 4 else { return [] }
        let length: Int
        switch buffer[3] {
        case 1: length = 4
        case 3: length = 1 + Int(buffer[4])
        case 4: length = 16
        default: throw .malformed("its reply has an address of an unknown type")
        }
        guard buffer.count >= 6 + length else { return [] }
        return try open(after: 6 + length)
    }

    private static func reason(_ code: UInt8) -> String {
        let known = [
            "general failure", "not allowed by its rules", "network unreachable", "host unreachable", "connection refused",
            "time to live expired", "command not supported", "address type not supported",
        ]
        return 1...8 ~= code ? known[Int(code) - 1] : "refused (\(code))"
    }

    private func socks5Request() throws(Failure) -> [UInt8] {
        var request: [UInt8] = [5, 1, 0]
        switch destination {
        case .address(let bytes): request += [bytes.count == 4 ? 1 : 4] + bytes
        case .name(let name):
            guard 1...255 ~= name.utf8.count else { throw .unsupportedRequest("SOCKS requires host names of 1 to 255 bytes") }
            request += [3, UInt8(name.utf8.count)] + Array(name.utf8)
        }
        return request + portBytes
    }

    private func login() throws(Failure) -> [UInt8] {
        let (name, secret) = (OctetText.octets(of: user ?? ""), OctetText.octets(of: password ?? ""))
        guard name.count <= 255, secret.count <= 255 else {
            throw .unsupportedRequest("SOCKS does not support user names and passwords of more than 255 bytes")
        }
        return [1, UInt8(name.count)] + name + [UInt8(secret.count)] + secret
    }

    // MARK: SOCKS 4

    private func socks4Request() throws(Failure) -> [UInt8] {
        let name = OctetText.octets(of: user ?? "")
        guard !name.contains(0), name.count <= 255 else { throw .unsupportedRequest("SOCKS 4 cannot send this user name") }
        switch destination {
        case .address(let bytes) where bytes.count == 4: return [4, 1] + portBytes + bytes + name + [0]
        case .address: throw .unsupportedRequest("SOCKS 4 does not support IPv6 addresses")
        case .name(let host):
            guard 1...255 ~= host.utf8.count, !host.utf8.contains(0) else {
                throw .unsupportedRequest("SOCKS 4a cannot send this name")
            }
            return [4, 1] + portBytes + [0, 0, 0, 1] + name + [0] + Array(host.utf8) + [0]
        }
    }

    private mutating func readSOCKS4Reply() throws(Failure) -> [Action] {
        if let first = buffer.first, first != 0 { throw .malformed("it does not speak SOCKS 4") }
        guard buffer.count > 1 else { return [] }
        switch buffer[1] {
        case 90: return buffer.count < 8 ? [] : try open(after: 8)
        case 91: throw .refused("rejected or failed")
        case 92, 93: throw .authenticationFailed("it could not verify the user (\(buffer[1]))")
        default: throw .malformed("its reply is malformed")
        }
    }

    // MARK: Both

    private var portBytes: [UInt8] { [UInt8(port >> 8), UInt8(truncatingIfNeeded: port)] }

    /// The next message, or nil until it is complete; bytes after it are an error.
    private mutating func take(_ count: Int) throws(Failure) -> [UInt8]? {
        guard buffer.count >= count else { return nil }
        guard buffer.count == count else { throw .malformed("it sent unexpected bytes") }
        defer { buffer = [] }
        return buffer
    }

    private mutating func open(after count: Int) throws(Failure) -> [Action] {
        // Unless the server may send first, bytes that arrive before anything was sent to the server do not come from it.
        guard buffer.count == count || serverMaySpeakFirst else { throw .malformed("it sent unexpected bytes") }
        earlyBytes = Array(buffer.dropFirst(count))
        stage = .over
        buffer = []
        return [.opened]
    }
}
