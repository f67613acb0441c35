//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPWire

/// Composes the fields of a request: what the app set, what the session adds, and what only we may say.
///
/// Made once for a session, because every request goes through it. Fields that frame the message or govern the connection are
/// ours: were the app's own sent beside them, the server could read another message than we wrote (request smuggling).
package final class OutgoingHeaders: Sendable {
    /// The session's fields, as they are appended.
    private let defaults: HeaderBlock
    private let names: [String]
    /// Whether some of the session's fields are for the origin alone that a load began with.
    package let hasCredentials: Bool
    /// Which of the session's fields names the codings that are understood here; nil where the app named its own, or none is sent.
    private let codings: Int?
    /// A POST with a body says of which type it is, where the app does not.
    private let typesForms: Bool

    /// Takes `httpAdditionalHeaders`, then the standard fields of ``DefaultHeaders``; the first of a name counts.
    ///
    /// - Parameters:
    ///   - additional: Names and values.
    ///   - codings: The session's `Accept-Encoding`, where there is none among them; none in a request for a part, as a part of coded bytes
    ///     decodes to nothing.
    ///   - omitted: The names of fields that are sent only where a request has them.
    package init(
        additional: [(name: String, value: String)], codings: (name: String, value: String)? = nil,
        omitting omitted: [String] = []
    ) {
        let omitted = Set(omitted.map { $0.lowercased() })
        var defaults = HeaderBlock()
        for field in additional where !defaults.contains(field.name) {
            guard ASCII.isToken(field.name), ASCII.isFieldValue(field.value), !Self.isReservedForSession(field.name),
                !omitted.contains(field.name.lowercased())
            else {
                continue
            }
            defaults.append(field.name, field.value)
        }
        if let codings, !defaults.contains(codings.name), !omitted.contains(codings.name.lowercased()) {
            self.codings = defaults.count
            defaults.append(codings.name, defaults.contains(.range) ? "identity" : codings.value)
        } else {
            self.codings = nil
        }
        typesForms = !omitted.contains("content-type")
        defaults.markAsJudged()
        self.defaults = defaults
        names = defaults.fields.map(\.name)
        hasCredentials = names.contains(where: RedirectPolicy.isBoundToOrigin)
    }

    /// The session's own value of a field, which requests have that do not set one.
    package func sessionValue(_ name: String) -> String? { defaults.first(name) }

    /// Composes the fields of one request.
    ///
    /// - Parameters:
    ///   - headers: The app's fields. Reserved ones are left out, and those that `extra` names; of a `Host` the value is taken.
    ///   - target: Where the request goes.
    ///   - method: The method of the request.
    ///   - bodyLength: Nil without a body, -1 where its length is not known; how it ends is then for the connection to say.
    ///   - extra: The engine's fields for this one message, `Range` or `Cookie`. They win over all others.
    ///   - leftOrigin: Whether a redirect led away from the origin that the load began with; the session's credentials stay there.
    ///   - isAnswered: Whether a challenge of the server was answered. The answer is in `extra`, or the connection carries it; no other
    ///     `Authorization` is sent.
    ///   - isForProxy: Whether a proxy reads the message that the request's own `Proxy-Authorization` is for.
    /// - Returns: The fields as they go on the wire.
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
        // First, as RFC 9110, section 7.2, asks. The app's own names one of the servers that are behind the URL's address.
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

    /// The fields of a GET that has none of its own: the same for each of a target, and so laid out to be written as they are.
    ///
    /// They contain the session's credentials: where ``hasCredentials``, they are for a load that has not left its first origin, and
    /// answers no challenge of the server.
    package func plain(for target: RequestTarget) -> HeaderBlock? {
        try? compose(request: HeaderBlock(), target: target, method: "GET", bodyLength: nil, extra: []).laidOut()
    }

    /// The `Host` that the app set on a request; nil where it set none, or an empty one.
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
                // RFC 9110, section 10.1.1: no expectation without content.
                if Self.isReserved(name) || !hasBody && Self.equal(name, "Expect") { continue }
                // Meant for the proxy alone (RFC 9110, section 11.7.2).
                if !isForProxy, Self.equal(name, "Proxy-Authorization") { continue }
                if isAnswered, Self.equal(name, "Authorization") { continue }
                if hidden.contains(where: { Self.equal(name, $0.0) }) { continue }
                block.append(name: name, value: UnsafeRawBufferPointer(rebasing: bytes[line.value]))
            }
        }
    }

    /// How long the body is, as far as that is known: what says so in every version of HTTP.
    ///
    /// A request that could have a body says that it has none (RFC 9110, section 8.6).
    private func appendLength(_ bodyLength: Int64?, _ method: String, to block: inout HeaderBlock) {
        switch bodyLength ?? 0 {
        case 0:
            if method == "POST" || method == "PUT" || method == "PATCH" { block.append("Content-Length", "0") }
        case let length where length > 0:
            block.append("Content-Length", String(length))
        default: break
        }
        // As Apple does for the app that sets none.
        if typesForms, let bodyLength, bodyLength != 0, method == "POST", !block.contains("Content-Type") {
            block.append("Content-Type", "application/x-www-form-urlencoded")
        }
    }

    /// Whether a field is not for a session to set: those of Apple's list ("you should not modify the following headers") but
    /// `Authorization`, which Apple's system sends all the same, and those that are ours.
    ///
    /// `Proxy-Authorization` is among them: what a session says to its proxies belongs to the settings that name them.
    package static func isReservedForSession(_ name: String) -> Bool {
        switch name.lowercased() {
        case "proxy-authenticate", "proxy-authorization", "www-authenticate": true
        default: isReserved(name)
        }
    }

    /// Whether a field is ours to set; of `Host` the value is the app's where a request has one.
    private static func isReserved(_ name: String) -> Bool {
        var name = name
        return name.withUTF8 { isReserved(UnsafeRawBufferPointer($0)) }
    }

    private static func isReserved(_ name: UnsafeRawBufferPointer) -> Bool {
        let field = FieldName(name)
        guard field == .other else { return field.isOfConnection || [.contentLength, .host, .trailer].contains(field) }
        return equal(name, "HTTP2-Settings")
    }

    private static func equal(_ name: UnsafeRawBufferPointer, _ other: String) -> Bool {
        name.count == other.utf8.count && zip(name, other.utf8).allSatisfy { ASCII.lowercased($0) == ASCII.lowercased($1) }
    }
}
