// SPDX-License-Identifier: Apache-2.0

public import Foundation

// Keys and values of the Security framework's dictionaries. The strings are the same as Apple's, and are opaque.

/// The type of a key.
public var kSecAttrKeyType: CFString { "type" as NSString }
/// RSA.
public var kSecAttrKeyTypeRSA: CFString { "42" as NSString }
/// An elliptic curve key over a NIST curve: P-256, P-384 or P-521.
public var kSecAttrKeyTypeECSECPrimeRandom: CFString { "73" as NSString }
/// The same as `kSecAttrKeyTypeECSECPrimeRandom`, by its older name.
public var kSecAttrKeyTypeEC: CFString { "73" as NSString }
/// The size of a key in bits.
public var kSecAttrKeySizeInBits: CFString { "bsiz" as NSString }
/// Whether a key is public or private.
public var kSecAttrKeyClass: CFString { "kcls" as NSString }
/// Public.
public var kSecAttrKeyClassPublic: CFString { "0" as NSString }
/// Private.
public var kSecAttrKeyClassPrivate: CFString { "1" as NSString }

/// The password of a PKCS #12 file.
public var kSecImportExportPassphrase: CFString { "passphrase" as NSString }
/// The name of an identity.
public var kSecImportItemLabel: CFString { "label" as NSString }
/// A `SecTrust` of the identity's chain.
public var kSecImportItemTrust: CFString { "trust" as NSString }
/// The certificates: an array of `SecCertificate`.
public var kSecImportItemCertChain: CFString { "chain" as NSString }
/// The `SecIdentity`.
public var kSecImportItemIdentity: CFString { "identity" as NSString }
