// SPDX-License-Identifier: Apache-2.0

import CQUIC
import FoundationEssentials
import LoadingModel
import NIOCore

/// What a QUIC connection is made with.
struct QUICSettings {
    /// The name for the handshake; nil if the host is an address.
    var serverName: String?
    /// The identity to present if the server requests one.
    var identity: ClientIdentity?

    /// How long a connection may be silent (RFC 9000, section 10.1), in nanoseconds; the peer may announce less.
    static let idleTimeout: UInt64 = 30_000_000_000
    /// The time within which the handshake must be complete, in nanoseconds.
    private static let handshakeTimeout: UInt64 = 10_000_000_000

    /// Passes the settings to `body` in the form of the library, valid until `body` returns.
    func withSettings<Result>(
        local: SocketAddress, remote: SocketAddress, now: UInt64, events: UnsafePointer<cquic_events>,
        context: UnsafeMutableRawPointer,
        _ body: (UnsafePointer<cquic_settings>) -> Result
    ) -> Result {
        var settings = cquic_settings()
        settings.now = now
        settings.stream_window = UInt64(HTTP3Connection.streamWindow)
        settings.connection_window = UInt64(HTTP3Connection.connectionWindow)
        settings.idle_timeout = Self.idleTimeout
        settings.handshake_timeout = Self.handshakeTimeout
        settings.max_field_section_size = UInt64(HTTP3Connection.sectionLimit)
        settings.events = events
        settings.context = context
        let certificates = identity?.certificates ?? []
        // All certificates in one piece of memory.
        let text = [UInt8](certificates.joined())
        let key = [UInt8](identity?.privateKey ?? Data())
        return text.withUnsafeBufferPointer { text in
            key.withUnsafeBytes { key in
                var start = 0
                let parts = certificates.map { certificate -> cquic_bytes in
                    defer { start += certificate.count }
                    return cquic_bytes(start: text.baseAddress.map { $0 + start }, count: certificate.count)
                }
                return parts.withUnsafeBufferPointer { parts in
                    settings.certificates = parts.baseAddress
                    settings.certificate_count = parts.count
                    settings.key = key.forQUIC
                    return local.withSockAddr { localAddress, localLength in
                        remote.withSockAddr { remoteAddress, remoteLength in
                            settings.local = localAddress
                            settings.local_length = socklen_t(localLength)
                            settings.remote = remoteAddress
                            settings.remote_length = socklen_t(remoteLength)
                            guard let serverName else { return body(&settings) }
                            return serverName.withCString {
                                settings.server_name = $0
                                return body(&settings)
                            }
                        }
                    }
                }
            }
        }
    }
}
