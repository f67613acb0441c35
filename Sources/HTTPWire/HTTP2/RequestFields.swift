// SPDX-License-Identifier: Apache-2.0

/// The fields of a request's head as HTTP/2 and HTTP/3 send them (RFC 9113, sections 8.2 and 8.3; RFC 9114, sections 4.2 and 4.3).
enum RequestFields {
    /// Cookies shorter than this many bytes are never indexed: an attacker who can cause requests with such a cookie could guess
    /// its value (RFC 7541, section 7.1.3; RFC 9204, section 7.1.3).
    ///
    /// nghttp2 and Firefox use the same threshold.
    static let minimumIndexedCookieLength = 20
    static let authority: StaticString = ":authority"
    static let method: StaticString = ":method"
    static let path: StaticString = ":path"
    static let priority: StaticString = "priority"
    static let protocolName: StaticString = ":protocol"
    static let scheme: StaticString = ":scheme"

    /// Throws if the head must not be sent.
    static func validate(_ head: borrowing RequestHead, protocolName: StaticString?) throws(InvalidRequest) {
        try RequestSerializer.validate(head)
        guard isTunnel(head, protocolName) || isPath(head.target, method: head.method) else { throw .target }
    }

    /// Whether a head requests a tunnel, which has neither scheme nor path, and whose target is the authority.
    static func isTunnel(_ head: borrowing RequestHead, _ protocolName: StaticString?) -> Bool {
        protocolName == nil && head.method == "CONNECT"
    }

    /// Whether a target is valid for `:path`, which "MUST NOT be empty".
    ///
    /// A valid target begins with a slash, or is the asterisk of OPTIONS.
    private static func isPath(_ target: String, method: String) -> Bool {
        target.utf8.first == UInt8(ascii: "/") || (target == "*" && method == "OPTIONS")
    }

    static func bytes(_ text: StaticString) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }

    /// Passes the fields to `body` in the order of sending, each with its treatment: the pseudo-header fields, the fields of the
    /// head, and the priority (RFC 9218, section 4) if the head has no `Priority` field.
    ///
    /// The case of the names is that of the head.
    @inline(__always)
    static func forEach(
        of head: borrowing RequestHead, scheme: StaticString, priority: StaticString?, protocolName: StaticString?,
        _ body: (
            _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ treatment: HPACKRequestNames.Treatment
        ) -> Void
    ) {
        var (method, target) = (head.method, head.target)
        method.withUTF8 { body(bytes(Self.method), UnsafeRawBufferPointer($0), .indexed) }
        if let protocolName { body(bytes(Self.protocolName), bytes(protocolName), .indexed) }
        let isTunnel = isTunnel(head, protocolName)
        if isTunnel {
            target.withUTF8 { body(bytes(authority), UnsafeRawBufferPointer($0), .indexed) }
        } else {
            body(bytes(Self.scheme), bytes(scheme), .indexed)
            target.withUTF8 { body(bytes(path), UnsafeRawBufferPointer($0), .notIndexed) }
        }
        let headers = head.headers
        let hasConnection = headers.contains(.connection)
        headers.bytes.withUnsafeBytes { text in
            if !isTunnel, let host = headers.index(of: .host) {
                body(bytes(authority), HPACKOutput.trimmed(text, headers.lines[host].value), .indexed)
            }
            for line in headers.lines {
                let name = UnsafeRawBufferPointer(rebasing: text[line.name])
                let value = HPACKOutput.trimmed(text, line.value)
                let treatment = HPACKRequestNames.shared.find(name, hash: HPACKHash.name(name))?.treatment ?? .indexed
                guard isSent(name, value, treatment), !hasConnection || !isConnectionSpecific(name, treatment, headers) else {
                    continue
                }
                if treatment == .cookie {
                    forEachCrumb(value) { body(name, $0, .cookie) }
                } else {
                    body(name, value, treatment)
                }
            }
        }
        if let priority, !headers.contains(.priority) { body(bytes(Self.priority), bytes(priority), .indexed) }
    }

    /// Whether a field is sent: the only value allowed for `TE` is `trailers` (RFC 9113, section 8.2.2).
    @inline(__always)
    static func isSent(
        _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ treatment: HPACKRequestNames.Treatment
    ) -> Bool {
        switch treatment {
        case .indexed, .notIndexed, .neverIndexed, .cookie: true
        case .te: value.count == 8 && ASCII.matches(value, 0, "trailers")
        case .omitted: false
        }
    }

    /// Whether `Connection` names the field; if so, the field is not sent.
    static func isConnectionSpecific(
        _ name: UnsafeRawBufferPointer, _ treatment: HPACKRequestNames.Treatment, _ headers: borrowing HeaderBlock
    ) -> Bool {
        treatment != .te && headers.hasToken(String(decoding: name, as: UTF8.self), in: .connection)
    }

    /// Passes each crumb of a cookie to `body`: "The Cookie header field MAY be split into separate header fields, each with one or
    /// more cookie-pairs" (RFC 9113, section 8.2.3).
    ///
    /// Crumbs are joined with a semicolon and one space. A value is not split at a semicolon followed by more whitespace, because
    /// joining the crumbs would change the value.
    static func forEachCrumb(_ value: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void) {
        var start = 0
        var position = 0
        while position < value.count {
            guard value[position] == UInt8(ascii: ";"), position + 2 < value.count, value[position + 1] == UInt8(ascii: " "),
                !ASCII.isWhitespace(value[position + 2]), position > start, !ASCII.isWhitespace(value[position - 1])
            else {
                position += 1
                continue
            }
            body(UnsafeRawBufferPointer(rebasing: value[start..<position]))
            position += 2
            start = position
        }
        body(UnsafeRawBufferPointer(rebasing: value[start...]))
    }
}
