// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import HTTPWire

/// The target of a request: the origin and the parts of the URL that are sent.
///
/// The URL is parsed in one pass over its bytes, because every request needs a target.
///
/// A URL that is rejected here never reaches a socket. An accepted URL is sent byte for byte: percent-encoded octets stay encoded,
/// so that the URL in the app and the request on the server refer to the same host and path.
package struct RequestTarget: Sendable, Hashable {
    /// Why a URL cannot be used for an HTTP request.
    package enum Malformed: Error, Hashable, Sendable {
        /// The scheme is neither an HTTP nor a WebSocket scheme.
        case unsupportedScheme
        /// There is no authority, or the host is empty (RFC 9110, section 4.2.1: a recipient must reject such a URL).
        case missingHost
        /// The host is neither a name, an IPv4 address nor an IPv6 address in brackets.
        case badHost
        /// The port is not a number from 1 to 65535.
        case badPort
        /// A control character, space, backslash or non-ASCII byte: parsers disagree on the meaning of such a URL.
        case forbiddenCharacter

        package var message: String {
            switch self {
            case .unsupportedScheme: "its scheme is not http, https, ws or wss"
            case .missingHost: "it has no host"
            case .badHost: "its host is neither a name nor an address"
            case .badPort: "its port is not a number from 1 to 65535"
            case .forbiddenCharacter: "it contains a character that is not allowed in a URL"
            }
        }
    }

    /// A class, so that passing the target of every request between modules only copies a reference.
    @usableFromInline
    final class Parts: Sendable, Hashable {
        @usableFromInline let origin: Origin
        @usableFromInline let path: String
        @usableFromInline let hostHeader: String
        @usableFromInline let user: String?
        @usableFromInline let password: String?
        @usableFromInline let isWebSocket: Bool

        init(_ origin: Origin, _ path: String, _ hostHeader: String, _ user: String?, _ password: String?, _ isWebSocket: Bool) {
            self.origin = origin
            self.path = path
            self.hostHeader = hostHeader
            self.user = user
            self.password = password
            self.isWebSocket = isWebSocket
        }

        @usableFromInline
        static func == (left: Parts, right: Parts) -> Bool {
            left === right
                || left.origin == right.origin && left.path == right.path && left.hostHeader == right.hostHeader
                    && left.user == right.user && left.password == right.password && left.isWebSocket == right.isWebSocket
        }

        @usableFromInline
        func hash(into hasher: inout Hasher) {
            hasher.combine(origin)
            hasher.combine(path)
        }
    }

    @usableFromInline
    let parts: Parts

    @inlinable package var origin: Origin { parts.origin }
    @inlinable package var isSecure: Bool { parts.origin.isSecure }
    /// Path and query in origin-form (RFC 9112, section 3.2.1): never empty, no fragment.
    @inlinable package var path: String { parts.path }
    /// The value of `Host` (RFC 9110, section 7.2): the default port is omitted, and an IPv6 address is in brackets without its
    /// zone (RFC 6874).
    @inlinable package var hostHeader: String { parts.hostHeader }
    /// The percent-decoded user of the URL's userinfo, as text that preserves its octets (``OctetText``); nil if absent.
    @inlinable package var user: String? { parts.user }
    /// The percent-decoded password of the URL's userinfo, as text like ``user``; nil if there is no colon.
    @inlinable package var password: String? { parts.password }
    /// Whether the scheme is `ws` or `wss`; the origin is the origin of the handshake, `http` or `https`.
    @inlinable package var isWebSocket: Bool { parts.isWebSocket }

    package init(_ url: URL) throws(Malformed) {
        try self.init(text: url.absoluteString)
    }

    /// Parses the text of a URL.
    package init(text: String) throws(Malformed) {
        var text = text
        let parsed: Result<RequestTarget, Malformed> = text.withUTF8 { bytes in
            var reader = TargetReader(bytes: bytes)
            do throws(Malformed) { return .success(try reader.read()) } catch { return .failure(error) }
        }
        self = try parsed.get()
    }

    init(origin: Origin, path: String, hostHeader: String, user: String?, password: String?, isWebSocket: Bool = false) {
        parts = Parts(origin, path, hostHeader, user, password, isWebSocket)
    }
}
