//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Versions of TLS, as older programs name them.
///
/// Raw values are Apple's.
///
/// Use `tls_protocol_version_t`. Versions before TLS 1.0 are never spoken; the nearest that is stands for them.
public enum SSLProtocol: Int32, Sendable {
    /// Whatever the system's default is.
    case sslProtocolUnknown = 0
    /// SSL 2.0: stands for TLS 1.0.
    case sslProtocol2 = 1
    /// SSL 3.0: stands for TLS 1.0.
    case sslProtocol3 = 2
    /// SSL 3.0 alone: stands for TLS 1.0.
    case sslProtocol3Only = 3
    /// TLS 1.0.
    case tlsProtocol1 = 4
    /// TLS 1.0 alone: the same as TLS 1.0.
    case tlsProtocol1Only = 5
    /// All that there are: the oldest of them is TLS 1.0.
    case sslProtocolAll = 6
    /// TLS 1.1.
    case tlsProtocol11 = 7
    /// TLS 1.2.
    case tlsProtocol12 = 8
    /// DTLS 1.0, which no URL is loaded over.
    case dtlsProtocol1 = 9
    /// TLS 1.3.
    case tlsProtocol13 = 10
    /// DTLS 1.2, which no URL is loaded over.
    case dtlsProtocol12 = 11
    /// The newest there is.
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

    /// The same version in newer terms; `unknown` where the older name means none in particular.
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
