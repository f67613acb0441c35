// SPDX-License-Identifier: Apache-2.0

import HTTPRules

/// For any NTLM challenge, the response uses only NTLMv2, and the response's fields lie within the response, one after the other.
///
/// The input is the challenge.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzNTLM(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: data, count: size))
    guard let challenge = NTLM.Challenge(bytes) else { return 0 }
    for (user, binding) in [("DOMAIN\\user", nil), ("user@d.example", [UInt8](repeating: 7, count: 16))] as [(String, [UInt8]?)] {
        let message = NTLM.authenticateMessage(
            challenge: challenge, user: user, password: "p", workstation: "w", clientChallenge: [1, 2, 3, 4, 5, 6, 7, 8],
            timestamp: 9, channelBinding: binding, servicePrincipal: "HTTP/host", negotiate: NTLM.negotiateMessage()
        )
        func number(_ offset: Int, _ size: Int) -> Int { (0..<size).reduce(0) { $0 | Int(message[offset + $1]) << ($1 * 8) } }
        var end = challenge.timestamp == nil ? 72 : 88
        // The payloads of domain, user, workstation, LM response, NT response and session key follow each other.
        for field in [28, 36, 44, 12, 20, 52] {
            precondition(number(field, 2) == number(field + 2, 2) && number(field + 4, 4) == end, "field at \(field)")
            end += number(field, 2)
        }
        precondition(end == message.count, "\(end) is not the end")
        precondition(number(12, 2) == 24 && number(52, 2) == 0, "an LM response")
        let response = Array(message[number(24, 4)..<(number(24, 4) + number(20, 2))])
        precondition(
            response[16] == 1 && response[17] == 1 && Array(response[32..<40]) == [1, 2, 3, 4, 5, 6, 7, 8], "not NTLMv2")
        guard let time = challenge.timestamp else { continue }
        precondition((0..<8).allSatisfy { response[24 + $0] == UInt8(truncatingIfNeeded: time >> ($0 * 8)) }, "a different time")
        precondition(message[72..<88].contains { $0 != 0 }, "no message integrity code")
        let older = message[number(16, 4)..<(number(16, 4) + 24)]
        precondition(older.allSatisfy { $0 == 0 }, "an LM response beside a message integrity code")
    }
    return 0
}
