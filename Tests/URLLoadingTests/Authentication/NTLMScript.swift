// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import URLLoading

/// The server side of the three legs of NTLM over HTTP (MS-NTHT), on the level of connections: it reads the user name and accepts
/// every user that it knows.
///
/// Other tests check the proof of the password.
final class NTLMScript: Sendable {
    private enum Stage: Sendable, Equatable {
        case fresh, challenged
        case open(user: String)
    }

    struct Leg: Sendable, Equatable {
        var connection: Int
        /// 1 for the first message, 3 for the last, 0 for a request without a message.
        var message: Int
    }

    private let users: Set<String>
    private let stages = Watched<[Int: Stage]>([:])
    private let record = Watched<[Leg]>([])
    let breaksBetweenLegs: Bool
    /// Whether each request must authenticate, and not only each connection.
    let authenticatesEachRequest: Bool
    /// The number of final NTLM messages to which the server still replies by closing the connection.
    private let losses: Watched<Int>
    let isProxy: Bool

    init(
        users: Set<String> = ["ada"], breaksBetweenLegs: Bool = false, isProxy: Bool = false,
        authenticatesEachRequest: Bool = false,
        losses: Int = 0
    ) {
        self.authenticatesEachRequest = authenticatesEachRequest
        self.losses = Watched(losses)
        self.users = users
        self.breaksBetweenLegs = breaksBetweenLegs
        self.isProxy = isProxy
    }

    var legs: [Leg] { record.read { $0 } }
    /// The authenticated user of each connection.
    var owners: [Int: String] {
        stages.read { stages in
            stages.compactMapValues { if case .open(let user) = $0 { user } else { nil } }
        }
    }

    func script(
        _ reply: @escaping @Sendable (RecordedRequest, _ user: String) -> ScriptedReply = { _, user in .ok("in as \(user)") }
    ) -> @Sendable (RecordedRequest) -> ScriptedReply {
        { [self] request in
            let sent = request.header(isProxy ? "Proxy-Authorization" : "Authorization")
            let message =
                sent.flatMap { $0.hasPrefix("NTLM ") ? Data(base64Encoded: String($0.dropFirst(5))).map { Array($0) } : nil }
                ?? []
            let kind = message.count > 12 && message.starts(with: Array("NTLMSSP\0".utf8)) ? Int(message[8]) : 0
            record.change { $0.append(Leg(connection: request.connection, message: kind)) }
            let stage = stages.read { $0[request.connection] ?? .fresh }
            switch (kind, stage) {
            case (1, _):
                set(.challenged, request)
                let effects = refuse("NTLM " + Data(Self.challenge).base64EncodedString())
                return breaksBetweenLegs ? effects.then(.close) : effects
            case (3, .challenged)
            where losses.change({ losses in
                losses -= 1
                return losses >= 0
            }):
                return ScriptedReply([.close])
            case (3, .challenged):
                let user = Self.user(of: message)
                guard users.contains(user) else {
                    set(.fresh, request)
                    return refuse("NTLM")
                }
                set(authenticatesEachRequest ? .fresh : .open(user: user), request)
                return reply(request, user)
            case (0, .open(let user)): return reply(request, user)
            default:
                set(.fresh, request)
                return refuse("NTLM")
            }
        }
    }

    private func set(_ stage: Stage, _ request: RecordedRequest) { stages.change { $0[request.connection] = stage } }

    private func refuse(_ challenge: String) -> ScriptedReply {
        isProxy ? .proxyUnauthorized(challenge) : .unauthorized(challenge)
    }

    /// The user name in the last message, whose `UserNameFields` are at offset 36 (MS-NLMP, section 2.2.1.3).
    static func user(of message: [UInt8]) -> String {
        guard message.count >= 44 else { return "" }
        let length = Int(message[36]) | Int(message[37]) << 8
        let offset = Int(message[40]) | Int(message[41]) << 8
        guard offset + length <= message.count else { return "" }
        let units = stride(from: offset, to: offset + length - 1, by: 2).map {
            UInt16(message[$0]) | UInt16(message[$0 + 1]) << 8
        }
        return String(decoding: units, as: UTF16.self)
    }

    /// The server's message (MS-NLMP, section 2.2.1.2), with a domain, a server name and the server's time.
    private static let challenge: [UInt8] = {
        func pair(_ id: UInt8, _ value: [UInt8]) -> [UInt8] { [id, 0, UInt8(value.count), 0] + value }
        func utf16(_ text: String) -> [UInt8] { text.utf8.flatMap { [$0, 0] } }
        let information =
            pair(2, utf16("TOWER")) + pair(1, utf16("SERVER")) + pair(7, [0, 0x80, 0x3E, 0xD5, 0xDE, 0xB1, 0x9D, 1]) + pair(0, [])
        let count = UInt8(information.count)
        var bytes = Array("NTLMSSP\0".utf8)
        bytes += [2, 0, 0, 0]
        bytes += [0, 0, 0, 0, 56, 0, 0, 0]
        bytes += [0x05, 0x82, 0x89, 0xA2]
        bytes += [1, 2, 3, 4, 5, 6, 7, 8]
        bytes += [0, 0, 0, 0, 0, 0, 0, 0]
        bytes += [count, 0, count, 0, 56, 0, 0, 0]
        bytes += [10, 0, 0, 0, 0, 0, 0, 15]
        return bytes + information
    }()
}
