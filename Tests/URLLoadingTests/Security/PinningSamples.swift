// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import URLLoading

// Code for pinning, as tutorials and security guides show it for Apple's platforms: it must compile unchanged.

enum PinningSamples {
    /// Evaluates the trust, and compares the server's certificate with the pinned one, through pointers.
    static func comparesCertificates(_ serverTrust: SecTrust, with pinned: Data) -> Bool {
        var secresult = SecTrustResultType.invalid
        let status = SecTrustEvaluate(serverTrust, &secresult)
        if errSecSuccess == status, secresult == .unspecified || secresult == .proceed {
            if let serverCertificate = SecTrustGetCertificateAtIndex(serverTrust, 0) {
                let serverCertificateData = SecCertificateCopyData(serverCertificate)
                let data = CFDataGetBytePtr(serverCertificateData)
                let size = CFDataGetLength(serverCertificateData)
                let cert1 = NSData(bytes: data, length: size)
                return cert1.isEqual(to: pinned)
            }
        }
        return false
    }

    private static let rsa2048Asn1Header: [UInt8] = [
        0x30, 0x82, 0x01, 0x22, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00, 0x03,
        0x82, 0x01, 0x0f, 0x00,
    ]
    private static let ecDsaSecp256r1Asn1Header: [UInt8] = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d,
        0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
    ]

    /// Rebuilds the SubjectPublicKeyInfo of a certificate, and returns its SHA-256 hash in base64.
    static func publicKeyHash(of certificate: SecCertificate) -> String? {
        guard let publicKey = SecCertificateCopyKey(certificate),
            let publicKeyData = SecKeyCopyExternalRepresentation(publicKey, nil) as Data?,
            let attributes = SecKeyCopyAttributes(publicKey) as? [CFString: Any],
            let keyType = attributes[kSecAttrKeyType] as? String, let keySize = attributes[kSecAttrKeySizeInBits] as? Int
        else { return nil }
        var keyWithHeader: Data
        if keyType == kSecAttrKeyTypeRSA as String, keySize == 2048 {
            keyWithHeader = Data(rsa2048Asn1Header)
        } else if keyType == kSecAttrKeyTypeECSECPrimeRandom as String, keySize == 256 {
            keyWithHeader = Data(ecDsaSecp256r1Asn1Header)
        } else {
            return nil
        }
        keyWithHeader.append(publicKeyData)
        return TestCertificates.sha256(keyWithHeader).base64EncodedString()
    }

    /// Returns the identity and the certificate chain in a PKCS #12 file; nil if the import fails.
    static func identity(in PKCS12Data: Data, password: String) -> (SecIdentity, [SecCertificate])? {
        let importPasswordOption: NSDictionary = [kSecImportExportPassphrase as NSString: password]
        var items: CFArray?
        let secError: OSStatus = SecPKCS12Import(PKCS12Data as NSData, importPasswordOption, &items)
        guard secError == errSecSuccess else { return nil }
        guard let theItemsCFArray = items else { return nil }
        let theItemsNSArray: NSArray = theItemsCFArray as NSArray
        guard let dictArray = theItemsNSArray as? [[String: AnyObject]] else { return nil }
        guard let identity = dictArray.first?[kSecImportItemIdentity as String] as? SecIdentity,
            let chain = dictArray.first?[kSecImportItemCertChain as String] as? [SecCertificate],
            dictArray.first?[kSecImportItemTrust as String] is SecTrust
        else { return nil }
        return (identity, chain)
    }
}
