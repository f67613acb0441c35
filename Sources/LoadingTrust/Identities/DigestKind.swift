//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import Crypto
import FoundationEssentials
import SwiftASN1

/// The hashes that PKCS #12 and PKCS #5 use.
enum DigestKind {
    case sha1, sha256, sha384, sha512

    init?(_ name: ASN1ObjectIdentifier) {
        switch name {
        case [1, 3, 14, 3, 2, 26]: self = .sha1
        case [2, 16, 840, 1, 101, 3, 4, 2, 1]: self = .sha256
        case [2, 16, 840, 1, 101, 3, 4, 2, 2]: self = .sha384
        case [2, 16, 840, 1, 101, 3, 4, 2, 3]: self = .sha512
        default: return nil
        }
    }

    var byteCount: Int {
        switch self {
        case .sha1: 20
        case .sha256: 32
        case .sha384: 48
        case .sha512: 64
        }
    }

    /// The block size in bytes: "v" in RFC 7292, appendix B.
    var blockByteCount: Int {
        switch self {
        case .sha1, .sha256: 64
        case .sha384, .sha512: 128
        }
    }

    func hash(_ bytes: [UInt8]) -> [UInt8] {
        switch self {
        case .sha1: Array(Insecure.SHA1.hash(data: bytes))
        case .sha256: Array(SHA256.hash(data: bytes))
        case .sha384: Array(SHA384.hash(data: bytes))
        case .sha512: Array(SHA512.hash(data: bytes))
        }
    }

    /// Returns the HMAC of bytes (RFC 2104).
    func authenticate(_ bytes: [UInt8], key: [UInt8]) -> [UInt8] {
        let key = SymmetricKey(data: key)
        return switch self {
        case .sha1: Array(HMAC<Insecure.SHA1>.authenticationCode(for: bytes, using: key))
        case .sha256: Array(HMAC<SHA256>.authenticationCode(for: bytes, using: key))
        case .sha384: Array(HMAC<SHA384>.authenticationCode(for: bytes, using: key))
        case .sha512: Array(HMAC<SHA512>.authenticationCode(for: bytes, using: key))
        }
    }
}
