// SPDX-License-Identifier: Apache-2.0

/// The code and reason of a close frame (RFC 6455, section 5.5.1).
package struct WebSocketClose: Hashable, Sendable {
    /// The status code; nil if the frame has no body.
    package var code: UInt16?
    package var reason: String

    /// The maximum payload length of a control frame (section 5.5).
    package static let maximumBodyLength = 125

    package init(code: UInt16? = nil, reason: String = "") {
        self.code = code
        self.reason = reason
    }

    /// Reads the body of a close frame.
    package init(body: UnsafeRawBufferPointer) throws(WebSocketFailure) {
        guard body.count > 0 else {
            self.init()
            return
        }
        guard body.count >= 2 else { throw Self.shortBody }
        let code = UInt16(body[0]) << 8 | UInt16(body[1])
        guard Self.isAllowed(code) else { throw .protocolError("a close frame has the code \(code), which may not be sent") }
        guard let reason = String(validating: body[2...], as: UTF8.self) else {
            throw .invalidData("the reason of a close frame is not UTF-8")
        }
        self.init(code: code, reason: reason)
    }

    static var shortBody: WebSocketFailure { .protocolError("a close frame has a body of one byte") }

    /// Whether this code may appear in a close frame.
    ///
    /// Codes below 3000 must be defined (section 7.4.2). Section 7.4.1 defines 1000 to 1011 and 1015, and the IANA registry 1012 to
    /// 1014. The code 1004 is reserved. The codes 1005, 1006 and 1015 only report conditions to an app ("MUST NOT be set as a
    /// status code in a Close control frame by an endpoint").
    package static func isAllowed(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }

    /// The body of a close frame with this code and reason.
    ///
    /// A code that must not be sent is omitted together with the reason, which requires a code. A reason that is too long is
    /// truncated between characters.
    package var body: [UInt8] {
        guard let code, Self.isAllowed(code) else { return [] }
        var body = [UInt8(truncatingIfNeeded: code >> 8), UInt8(truncatingIfNeeded: code)]
        guard body.count + reason.utf8.count > Self.maximumBodyLength else { return body + reason.utf8 }
        for character in reason {
            guard body.count + character.utf8.count <= Self.maximumBodyLength else { break }
            body += character.utf8
        }
        return body
    }
}
