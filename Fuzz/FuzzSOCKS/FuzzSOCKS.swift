// SPDX-License-Identifier: Apache-2.0

import TransportMachines

/// For any bytes of a SOCKS proxy, in any pieces, the handshake ends once, and a password is sent only if the proxy requests it.
///
/// The first byte of the input chooses the request. The proxy's bytes follow in pieces, each after its length; a length of 0
/// means that the proxy closes the connection.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzSOCKS(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    var input = Array(UnsafeBufferPointer(start: data, count: size))[...]
    guard let wish = input.popFirst() else { return 0 }
    let destinations: [SOCKSHandshake.Destination] = [
        .name("a.test"), .address([192, 0, 2, 1]), .address([UInt8](repeating: 1, count: 16)),
        .name(String(repeating: "a", count: wish & 64 == 0 ? 255 : 256)),
    ]
    let user = wish & 8 == 0 ? nil : "me"
    let start = SOCKSHandshake(
        wish & 1 == 0 ? .five : .four, to: destinations[Int(wish >> 1 & 3)], port: 443, user: user,
        password: wish & 16 == 0 ? nil : String(repeating: "p", count: wish & 32 == 0 ? 9 : 256)
    )
    var events: [SOCKSHandshake.Event] = [.started]
    var bytes: [UInt8] = []
    while let length = input.popFirst() {
        let piece = Array(input.prefix(Int(length)))
        input = input.dropFirst(Int(length))
        bytes += piece
        events.append(length == 0 ? .closed : .received(piece))
    }
    let actions = run(start, events)
    if actions.last == .opened {
        let one = run(start, [.started] + bytes.map { .received([$0]) })
        precondition(one.starts(with: actions), "a different end if cut differently")
    }
    return 0
}

private func run(_ start: SOCKSHandshake, _ events: [SOCKSHandshake.Event]) -> [SOCKSHandshake.Action] {
    var handshake = start
    var all: [SOCKSHandshake.Action] = []
    var isOver = false
    for event in events {
        let actions = handshake.handle(event)
        precondition(!isOver || actions.isEmpty, "an action after the end")
        for action in actions {
            switch action {
            case .send(let bytes):
                precondition(!bytes.isEmpty && bytes.count <= 600, "\(bytes.count) bytes to be sent")
                // This is a login (RFC 1929). All other messages begin with the version of SOCKS.
                if bytes.first == 1, case .received(let piece) = event {
                    precondition(piece.last == 2, "the proxy did not ask for a password")
                }
            case .opened, .fail: isOver = true
            }
        }
        if case .received(let piece) = event, piece.isEmpty {
            precondition(actions.isEmpty || isOver, "an action without received bytes")
        }
        all += actions
    }
    precondition(all.count <= 4, "\(all.count) actions")
    return all
}
