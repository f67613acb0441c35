// SPDX-License-Identifier: Apache-2.0

package import HTTPWire

/// Composes the header fields of a request from the app's fields, the session's fields, and the fields that only the library sets.
///
/// An instance is created once per session, because every request needs one. The library sets the fields for message framing and
/// the connection. If the app's own framing fields were sent as well, the server could find the end of the message at a
/// position that the library did not intend (request smuggling).
package final class OutgoingHeaders: Sendable {
    /// The session's fields, in the form in which they are appended to the fields of a request.
    private let defaults: HeaderBlock
    private let names: [String]
    /// Whether some of the session's fields are only for the origin that a load started with.
    package let hasCredentials: Bool
    /// The index of the session's field that lists the supported content codings.
    ///
    /// Nil if the app set its own `Accept-Encoding` or the field is omitted.
    private let codings: Int?
    /// Whether to add the content type of a form to a POST with a body if the app set no type.
    private let typesForms: Bool

    /// Combines `httpAdditionalHeaders` with the standard fields of ``DefaultHeaders``; the first field of a name counts.
    ///
    /// - Parameters:
    ///   - additional: Names and values.
    ///   - codings: The session's `Accept-Encoding`, unless `additional` contains one. Range requests send `identity` instead,
    ///     because a part of encoded content cannot be decoded.
    ///   - omitted: The names of fields that are only sent if the request sets them.
    package init(
        additional: [(name: String, value: String)], codings: (name: String, value: String)? = nil,
        omitting omitted: [String] = []
    ) {
        let omitted = Set(omitted.map { $0.lowercased() })
        var defaults = HeaderBlock()
        for field in additional where !defaults.contains(field.name) {
            guard !Self.isReservedForSession(field.name), !omitted.contains(field.name.lowercased()) else { continue }
            defaults.append(field.name, ASCII.fieldValue(field.value))
        }
        if let codings, !defaults.contains(codings.name), !omitted.contains(codings.name.lowercased()) {
            self.codings = defaults.count
            defaults.append(codings.name, defaults.contains(.range) ? "identity" : codings.value)
        } else {
            self.codings = nil
        }
        typesForms = !omitted.contains("content-type")
        // A request with an invalid field fails, rather than being sent without a field that the app wanted.
        if (try? RequestSerializer.validate(defaults)) != nil { defaults.markAsValidated() }
        self.defaults = defaults
        names = defaults.fields.map(\.name)
        hasCredentials = names.contains(where: RedirectPolicy.isBoundToOrigin)
    }

    /// Returns the session's value of a field, used for requests that do not set the field.
    package func sessionValue(_ name: String) -> String? { defaults.first(name) }

    /// Composes the fields of one request.
    ///
    /// - Parameters:
    ///   - headers: The app's fields. Reserved fields and fields in `extra` are omitted, but the app's value of `Host` is used.
    ///   - target: The target of the request.
    ///   - method: The method of the request.
    ///   - bodyLength: Nil without a body, -1 if the length is unknown. The connection then decides how to mark the end of the
    ///     body.
    ///   - extra: The engine's fields for this message, such as `Range` or `Cookie`. These fields have precedence over all others.
    ///   - leftOrigin: Whether a redirect left the origin that the load started with. The session's credentials are then omitted.
    ///   - isAnswered: Whether the load responds to a challenge of the server. If so, the credentials are in `extra` or belong to
    ///     the connection; no other `Authorization` is sent.
    ///   - isForProxy: Whether the message is read by the proxy that the request's own `Proxy-Authorization` is for.
    /// - Returns: The fields as they are sent.
    package func compose(
        request headers: HeaderBlock,
        target: RequestTarget,
        method: String,
        bodyLength: Int64?,
        extra: [(String, String)],
        leftOrigin: Bool = false,
        isAnswered: Bool = false,
        isForProxy: Bool = false
    ) -> HeaderBlock {
        var block = HeaderBlock()
        block.reserveCapacity(
            bytes: headers.bytes.count + defaults.bytes.count + target.hostHeader.utf8.count + 96,
            lines: headers.count + defaults.count + extra.count + 3
        )
        // `Host` comes first, as RFC 9110, section 7.2, recommends. The app may set its own `Host` to select one of several servers
        // at the URL's address.
        block.append("Host", Self.ownHost(headers) ?? target.hostHeader)
        for (name, value) in extra { block.append(name, value) }
        append(
            headers, to: &block, hidden: extra, hasBody: bodyLength != nil, isAnswered: isAnswered, isForProxy: isForProxy)
        if headers.isEmpty, extra.isEmpty, !hasCredentials {
            block.append(contentsOf: defaults)
        } else {
            let asksForPart = headers.contains(.range)
            defaults.bytes.withUnsafeBytes { bytes in
                for (index, (line, name)) in zip(defaults.lines, names).enumerated() where !block.contains(name) {
                    if hasCredentials {
                        if leftOrigin, RedirectPolicy.isBoundToOrigin(name) { continue }
                        if isAnswered, name.lowercased() == "authorization" { continue }
                    }
                    if asksForPart, index == codings {
                        block.append(name, "identity")
                        continue
                    }
                    block.append(
                        name: UnsafeRawBufferPointer(rebasing: bytes[line.name]),
                        value: UnsafeRawBufferPointer(rebasing: bytes[line.value])
                    )
                }
            }
        }
        appendLength(bodyLength, method, to: &block)
        return block
    }

    /// Returns the fields of a GET request for which the app set no fields.
    ///
    /// The fields are the same for every such request to a target, so they are laid out once in the form that HTTP/1 writes.
    ///
    /// The fields include the session's credentials. If ``hasCredentials`` is true, use the fields only for a load that has not left
    /// its first origin and is not responding to a challenge.
    package func plain(for target: RequestTarget) -> HeaderBlock? {
        try? compose(request: HeaderBlock(), target: target, method: "GET", bodyLength: nil, extra: []).laidOut()
    }

    /// Returns the `Host` that the app set on a request; nil if the app set no `Host` or an empty one.
    package static func ownHost(_ headers: HeaderBlock) -> String? {
        guard let host = headers.first(.host), !host.isEmpty else { return nil }
        return host
    }

    private func append(
        _ headers: HeaderBlock, to block: inout HeaderBlock, hidden: [(String, String)], hasBody: Bool, isAnswered: Bool,
        isForProxy: Bool
    ) {
        guard !headers.isEmpty else { return }
        headers.bytes.withUnsafeBytes { bytes in
            for line in headers.lines {
                let name = UnsafeRawBufferPointer(rebasing: bytes[line.name])
                // RFC 9110, section 10.1.1: no expectation in a request without content.
                if Self.isReserved(name) || !hasBody && Self.equal(name, "Expect") { continue }
                // The field is only for the proxy (RFC 9110, section 11.7.2).
                if !isForProxy, Self.equal(name, "Proxy-Authorization") { continue }
                if isAnswered, Self.equal(name, "Authorization") { continue }
                if hidden.contains(where: { Self.equal(name, $0.0) }) { continue }
                block.append(name: name, value: UnsafeRawBufferPointer(rebasing: bytes[line.value]))
            }
        }
    }

    /// Adds `Content-Length` if the length of the body is known, in every version of HTTP.
    ///
    /// Without a body, the length is 0 for methods that usually have a body (RFC 9110, section 8.6). Also adds the default
    /// `Content-Type`.
    private func appendLength(_ bodyLength: Int64?, _ method: String, to block: inout HeaderBlock) {
        switch bodyLength ?? 0 {
        case 0:
            if method == "POST" || method == "PUT" || method == "PATCH" { block.append("Content-Length", "0") }
        case let length where length > 0:
            block.append("Content-Length", String(length))
        default: break
        }
        // Apple's default for a POST if the app sets no type.
        if typesForms, let bodyLength, bodyLength != 0, method == "POST", !block.contains("Content-Type") {
            block.append("Content-Type", "application/x-www-form-urlencoded")
        }
    }

    /// Whether a session must not set a field.
    ///
    /// The reserved fields are those that the library sets and those in Apple's list ("you should not modify the following headers").
    /// The exception is `Authorization`: a session can set it, because Apple's implementation sends it although it is in the list.
    /// `Proxy-Authorization` is reserved, because credentials for proxies belong to the proxy settings.
    package static func isReservedForSession(_ name: String) -> Bool {
        switch name.lowercased() {
        case "proxy-authenticate", "proxy-authorization", "www-authenticate": true
        default: isReserved(name)
        }
    }

    /// Whether the library sets a field.
    ///
    /// `Host` is included, although the value of the request's own `Host` is used unless it is empty.
    private static func isReserved(_ name: String) -> Bool {
        var name = name
        return name.withUTF8 { isReserved(UnsafeRawBufferPointer($0)) }
    }

    private static func isReserved(_ name: UnsafeRawBufferPointer) -> Bool {
        let field = FieldName(name)
        guard field == .other else { return field.isConnectionSpecific || [.contentLength, .host, .trailer].contains(field) }
        return equal(name, "HTTP2-Settings")
    }

    private static func equal(_ name: UnsafeRawBufferPointer, _ other: String) -> Bool {
        name.count == other.utf8.count && zip(name, other.utf8).allSatisfy { ASCII.lowercased($0) == ASCII.lowercased($1) }
    }
}
