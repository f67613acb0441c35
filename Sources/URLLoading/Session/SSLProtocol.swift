// SPDX-License-Identifier: Apache-2.0

/// TLS versions under the names that older programs use.
///
/// Raw values are Apple's.
///
/// Use `tls_protocol_version_t` instead. Versions before TLS 1.0 are not supported; TLS 1.0 is used instead.
public enum SSLProtocol: Int32, Sendable {
    /// The system's default.
    case sslProtocolUnknown = 0
    /// SSL 2.0: TLS 1.0 is used instead.
    case sslProtocol2 = 1
    /// SSL 3.0: TLS 1.0 is used instead.
    case sslProtocol3 = 2
    /// Only SSL 3.0: TLS 1.0 is used instead.
    case sslProtocol3Only = 3
    /// TLS 1.0.
    case tlsProtocol1 = 4
    /// Only TLS 1.0: the same as TLS 1.0.
    case tlsProtocol1Only = 5
    /// All versions, of which the oldest is TLS 1.0.
    case sslProtocolAll = 6
    /// TLS 1.1.
    case tlsProtocol11 = 7
    /// TLS 1.2.
    case tlsProtocol12 = 8
    /// DTLS 1.0, which no URL load uses.
    case dtlsProtocol1 = 9
    /// TLS 1.3.
    case tlsProtocol13 = 10
    /// DTLS 1.2, which no URL load uses.
    case dtlsProtocol12 = 11
    /// The newest supported version.
    case tlsProtocolMaxSupported = 999

    init(_ version: tls_protocol_version_t) {
        switch version {
        case .TLSv10: self = .tlsProtocol1
        case .TLSv11: self = .tlsProtocol11
        case .TLSv12: self = .tlsProtocol12
        case .TLSv13: self = .tlsProtocol13
        case .DTLSv10: self = .dtlsProtocol1
        case .DTLSv12: self = .dtlsProtocol12
        }
    }

    /// The corresponding `tls_protocol_version_t`; `unknown` if the older name stands for no particular version.
    func version(unknown: tls_protocol_version_t) -> tls_protocol_version_t {
        switch self {
        case .sslProtocolUnknown: unknown
        case .sslProtocol2, .sslProtocol3, .sslProtocol3Only, .tlsProtocol1, .tlsProtocol1Only, .sslProtocolAll: .TLSv10
        case .tlsProtocol11: .TLSv11
        case .tlsProtocol12: .TLSv12
        case .tlsProtocol13, .tlsProtocolMaxSupported: .TLSv13
        case .dtlsProtocol1: .DTLSv10
        case .dtlsProtocol12: .DTLSv12
        }
    }
}
