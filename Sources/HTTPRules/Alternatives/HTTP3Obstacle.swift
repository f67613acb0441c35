// SPDX-License-Identifier: Apache-2.0

/// A reason why an origin, or one of its endpoints, is not reached over HTTP/3.
package enum HTTP3Obstacle: Hashable, Sendable, CustomStringConvertible {
    // MARK: The session or the program
    /// The libraries cannot be used; the text says what to install.
    case noLibrary(String)
    /// The session's setting of versions excludes HTTP/3.
    case excluded
    /// QUIC needs TLS 1.3, and the session's maximum is lower.
    case tlsMaximum
    case unixSocket
    case multipath
    // MARK: The request
    case cleartext
    case proxy
    /// The connection is authenticated as a whole (NTLM, Negotiate), which requires HTTP/1.1.
    case authenticatedConnection
    /// The task needs a stream of bytes.
    case byteStream
    /// The server has refused HTTP/3, or the request needs another version, as to switch protocols.
    case otherVersion
    // MARK: The origin
    /// Neither the app, an `Alt-Svc` field nor an HTTPS record says that the origin speaks HTTP/3.
    case unannounced
    /// An alternative service speaks only another protocol, such as a draft of HTTP/3.
    case otherProtocol(String)
    /// An alternative service has a port from 1024 on although the origin's is below.
    ///
    /// On machines with several users, any of them may listen on such a port (RFC 7838, section 9.1).
    case unprivilegedPort(Int)
    /// An alternative service is at an address that the origin's network does not reach.
    case privateAddress(String)
    /// An endpoint failed, and is tried again from an instant on, in seconds of the clock that was passed.
    case broken(host: String, port: Int, until: Double)

    package var description: String {
        switch self {
        case .noLibrary(let advice): "the libraries for HTTP/3 cannot be used: \(advice)"
        case .excluded: "the session's setting of HTTP versions excludes HTTP/3"
        case .tlsMaximum: "HTTP/3 needs TLS 1.3, and the session's maximum is lower"
        case .unixSocket: "the session uses a Unix domain socket"
        case .multipath: "the session uses multipath TCP"
        case .cleartext: "HTTP/3 needs an https URL"
        case .proxy: "the request goes through a proxy"
        case .authenticatedConnection: "the connection is authenticated by NTLM or Negotiate, which needs HTTP/1.1"
        case .byteStream: "the task needs a stream of bytes"
        case .otherVersion: "the server refused HTTP/3, or the task needs another version of HTTP"
        case .unannounced: "the server does not announce HTTP/3, by Alt-Svc or an HTTPS record"
        case .otherProtocol(let name): "the server announces the protocol \(name), which is not used"
        case .unprivilegedPort(let port): "the server announces port \(port), which any user of its machine may listen on"
        case .privateAddress(let host): "the server announces \(host), which is not an address of its network"
        case .broken(let host, let port, _): "\(host), port \(port), failed over HTTP/3 a short while ago"
        }
    }
}
