// SPDX-License-Identifier: Apache-2.0

import Testing
import TransportMachines

struct SOCKSHandshakeTests {
    typealias Action = SOCKSHandshake.Action

    private static let opened: [UInt8] = [5, 0, 0, 1, 1, 2, 3, 4, 0, 80]

    /// Returns the actions for a proxy's bytes, which arrive in pieces.
    private static func run(_ handshake: SOCKSHandshake, _ pieces: [[UInt8]]) -> [Action] {
        var handshake = handshake
        var actions = handshake.handle(.started)
        for piece in pieces { actions += handshake.handle(.received(piece)) }
        return actions
    }

    private static func five(_ destination: SOCKSHandshake.Destination = .name("a.b"), user: String? = nil) -> SOCKSHandshake {
        SOCKSHandshake(.five, to: destination, port: 443, user: user, password: user.map { _ in "pw" })
    }

    @Test func `SOCKS 5 requests a name or an address (RFC 1928, section 4)`() {
        let rows: [(SOCKSHandshake.Destination, [UInt8])] = [
            (.name("a.b"), [3, 3, 97, 46, 98]), (.address([1, 2, 3, 4]), [1, 1, 2, 3, 4]),
            (.address(Array(0..<16)), [4] + Array(0..<16)),
        ]
        for (destination, bytes) in rows {
            let actions = Self.run(Self.five(destination), [[5, 0], Self.opened])
            #expect(actions == [.send([5, 1, 0]), .send([5, 1, 0] + bytes + [1, 187]), .opened])
        }
    }

    @Test func `a password is sent only if the proxy requests it (RFC 1929)`() {
        let request: [UInt8] = [5, 1, 0, 3, 3, 97, 46, 98, 1, 187]
        #expect(
            Self.run(Self.five(user: "me"), [[5, 2], [1, 0], Self.opened]) == [
                .send([5, 2, 0, 2]), .send([1, 2, 109, 101, 2, 112, 119]), .send(request), .opened,
            ])
        #expect(Self.run(Self.five(user: "me"), [[5, 0], Self.opened]) == [.send([5, 2, 0, 2]), .send(request), .opened])
    }

    @Test func `SOCKS 4 sends an address, and 4a a name`() {
        let granted: [UInt8] = [0, 90, 0, 0, 0, 0, 0, 0]
        let four = SOCKSHandshake(.four, to: .address([1, 2, 3, 4]), port: 80, user: "me", password: "unsaid")
        #expect(Self.run(four, [granted]) == [.send([4, 1, 0, 80, 1, 2, 3, 4, 109, 101, 0]), .opened])
        let named = SOCKSHandshake(.four, to: .name("a.b"), port: 80)
        #expect(Self.run(named, [granted]) == [.send([4, 1, 0, 80, 0, 0, 0, 1, 0, 97, 46, 98, 0]), .opened])
    }

    @Test func `an unsupported destination or user is refused before anything is sent`() {
        let rows = [
            Self.five(.name("")), Self.five(.name(String(repeating: "a", count: 256))),
            Self.five(user: String(repeating: "a", count: 256)),
            SOCKSHandshake(.four, to: .address(Array(0..<16)), port: 80),
            SOCKSHandshake(.four, to: .name("a\0b"), port: 80), SOCKSHandshake(.four, to: .name("a"), port: 80, user: "a\0"),
        ]
        for row in rows {
            let actions = Self.run(row, [])
            guard actions.count == 1, case .fail(.unsupportedRequest) = actions[0] else {
                Issue.record("\(actions)")
                continue
            }
        }
        #expect(Self.run(Self.five(.name(String(repeating: "a", count: 255))), [[5, 0], Self.opened]).last == .opened)
    }

    @Test func `the reply may arrive in any pieces`() {
        let rows: [(SOCKSHandshake, [[UInt8]])] = [
            (Self.five(user: "me"), [[5, 2], [1, 0], Self.opened]),
            (Self.five(), [[5, 0], [5, 0, 0, 3, 2, 97, 98, 0, 80]]),
            (Self.five(), [[5, 0], [5, 0, 0, 4] + [UInt8](repeating: 7, count: 18)]),
            (SOCKSHandshake(.four, to: .name("a"), port: 1), [[0, 90, 1, 2, 3, 4, 5, 6]]),
        ]
        for (handshake, replies) in rows {
            let whole = Self.run(handshake, replies)
            #expect(whole.last == .opened)
            #expect(Self.run(handshake, replies.flatMap { $0.map { [$0] } }) == whole)
        }
    }

    @Test func `a proxy that closes after any byte fails the handshake once`() {
        let bytes: [UInt8] = [5, 2, 1, 0] + Self.opened
        for cut in 0..<bytes.count {
            var handshake = Self.five(user: "me")
            _ = handshake.handle(.started)
            for byte in bytes.prefix(cut) { _ = handshake.handle(.received([byte])) }
            #expect(handshake.handle(.closed) == [.fail(.closed)], "\(cut)")
            #expect(handshake.handle(.received(Self.opened)) == [])
            #expect(handshake.handle(.closed) == [])
        }
    }

    @Test func `refusals are reported as soon as they are known`() {
        for code in UInt8(1)...255 {
            let actions = Self.run(Self.five(), [[5, 0], [5, code]])
            guard case .fail(.refused) = actions.last else {
                Issue.record("\(code): \(actions)")
                continue
            }
        }
        for reply in [[0, 92], [0, 93]] as [[UInt8]] {
            guard case .fail(.authenticationFailed) = Self.run(SOCKSHandshake(.four, to: .name("a"), port: 1), [reply]).last
            else {
                Issue.record("\(reply)")
                continue
            }
        }
        guard case .fail(.authenticationFailed) = Self.run(Self.five(), [[5, 0xFF]]).last,
            case .fail(.authenticationFailed) = Self.run(Self.five(user: "me"), [[5, 2], [1, 7]]).last
        else {
            Issue.record("the proxy demands a password")
            return
        }
    }

    @Test func `a handshake fails at most once, and does not open if bytes follow the reply`() {
        for first in UInt8.min...255 {
            for second in UInt8.min...255 {
                let actions = Self.run(Self.five(user: "me"), [[first, second], [1, 0, 9], [first], Self.opened])
                #expect(!actions.contains(.opened))
                #expect(actions.filter { if case .fail = $0 { true } else { false } }.count <= 1)
            }
        }
        guard case .fail(.malformed) = Self.run(Self.five(), [[5, 0], Self.opened + [72]]).last else {
            Issue.record("bytes after the reply")
            return
        }
    }
}
