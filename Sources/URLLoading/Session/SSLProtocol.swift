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
    case sslProtocol2 = 1
    case sslProtocol3 = 2
    case sslProtocol3Only = 3
    case tlsProtocol1 = 4
    case tlsProtocol1Only = 5
    case sslProtocolAll = 6
    case tlsProtocol11 = 7
    case tlsProtocol12 = 8
    case dtlsProtocol1 = 9
    case tlsProtocol13 = 10
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
