// SPDX-License-Identifier: Apache-2.0

import CSystemLibraries

extension GSSAPI {
    /// Why a handshake failed.
    package struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
        /// The reasons that callers distinguish.
        package enum Reason: Sendable, Hashable {
            /// There is no GSSAPI library.
            case isUnavailable
            /// The user has no ticket, or only expired tickets.
            case hasNoCredential
            /// The KDC rejects this user or this password.
            case credentialIsRefused
            /// The KDC does not know the server.
            case serverIsUnknown
            /// No KDC answers, or no KDC is known.
            case kdcIsUnreachable
            /// The server's token is malformed, missing, or not from this server.
            case serverIsRefused
            case other
        }

        package var reason: Reason
        /// The library's message; it contains names of principals, hosts and files, never a password.
        package var text: String
        /// The major status (RFC 2744, section 3.9.1).
        package var majorStatus: UInt32
        /// The mechanism's status.
        package var minorStatus: UInt32

        package var description: String { text }

        init(_ reason: Reason, _ text: String, majorStatus: UInt32 = 0, minorStatus: UInt32 = 0) {
            self.reason = reason
            self.text = text
            self.majorStatus = majorStatus
            self.minorStatus = minorStatus
        }

        /// Only the first step needs a KDC and a credential; failures of later steps are the server's fault.
        init(_ leg: clib_gss_leg, isFirst: Bool) {
            let text = SystemLibrary.text(leg.text)
            self.init(
                isFirst ? Reason(majorStatus: leg.major_status, minorStatus: leg.minor_status, text: text) : .serverIsRefused,
                text.isEmpty ? "GSSAPI status \(leg.major_status), \(leg.minor_status)" : text,
                majorStatus: leg.major_status,
                minorStatus: leg.minor_status
            )
        }
    }
}

extension GSSAPI.Failure.Reason {
    /// Checks the Kerberos codes first, because GSSAPI's own codes say little ("no credential" for an unreachable KDC).
    ///
    /// Heimdal passes Kerberos codes on as numbers. MIT's library renumbers the codes that pass through SPNEGO, so its messages are
    /// matched as text.
    init(majorStatus: UInt32, minorStatus: UInt32, text: String) {
        if let reason = Self.numbers[Int32(bitPattern: minorStatus)] ?? Self.texts.first(where: { text.contains($0.0) })?.1 {
            self = reason
            return
        }
        switch majorStatus >> 16 & 0xFF {
        // GSS_S_NO_CRED, GSS_S_CREDENTIALS_EXPIRED
        case 7, 11: self = .hasNoCredential
        default: self = .other
        }
    }

    /// The codes of RFC 4120, section 7.5.9, and further codes of the libraries, all offset by -1765328384.
    private static let numbers: [Int32: Self] = [
        // KDC_ERR_C_PRINCIPAL_UNKNOWN, CLIENT_REVOKED, KEY_EXPIRED, PREAUTH_FAILED; AP_ERR_BAD_INTEGRITY
        -1_765_328_378: .credentialIsRefused, -1_765_328_366: .credentialIsRefused, -1_765_328_361: .credentialIsRefused,
        -1_765_328_360: .credentialIsRefused, -1_765_328_353: .credentialIsRefused,
        // KDC_ERR_S_PRINCIPAL_UNKNOWN
        -1_765_328_377: .serverIsUnknown,
        // REALM_UNKNOWN, KDC_UNREACH, REALM_CANT_RESOLVE
        -1_765_328_230: .kdcIsUnreachable, -1_765_328_228: .kdcIsUnreachable, -1_765_328_164: .kdcIsUnreachable,
        // CC_NOTFOUND, FCC_NOFILE
        -1_765_328_243: .hasNoCredential, -1_765_328_189: .hasNoCredential,
    ]

    /// MIT's messages for the same errors.
    private static let texts: [(String, Self)] = [
        ("Client '", .credentialIsRefused),
        ("Preauthentication failed", .credentialIsRefused),
        ("Password incorrect", .credentialIsRefused),
        ("Decrypt integrity check failed", .credentialIsRefused),
        ("credentials have been revoked", .credentialIsRefused),
        ("Password has expired", .credentialIsRefused),
        ("not found in Kerberos database", .serverIsUnknown),
        ("Cannot contact any KDC", .kdcIsUnreachable),
        ("Cannot find KDC", .kdcIsUnreachable),
        ("Cannot resolve", .kdcIsUnreachable),
    ]
}
