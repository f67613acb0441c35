//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import URLLoading

/// The facts of a certificate (RFC 5280) that are displayed; nothing else is parsed.
struct CertificateFacts: Sendable {
    var subject = ""
    var issuer = ""
    var names: [String] = []
    var key = "a key of another kind"
    var begin: Date?
    var end: Date?
    /// Whether the subject and the issuer are the same.
    var isSelfIssued = false

    init(_ certificate: SecCertificate) {
        begin = SecCertificateCopyNotValidBeforeDate(certificate).map { $0 as Date }
        end = SecCertificateCopyNotValidAfterDate(certificate).map { $0 as Date }
        if let key = SecCertificateCopyKey(certificate), let facts = SecKeyCopyAttributes(key) as? [String: Any] {
            let type = facts[kSecAttrKeyType as String] as? String
            let bits = facts[kSecAttrKeySizeInBits as String] as? Int ?? 0
            let kinds = [kSecAttrKeyTypeRSA as String: "RSA", kSecAttrKeyTypeECSECPrimeRandom as String: "EC"]
            self.key = "\(type.map { kinds[$0] ?? $0 } ?? "a key") of \(bits) bits"
        }
        read(Array(SecCertificateCopyData(certificate) as Data))
    }

    private mutating func read(_ bytes: [UInt8]) {
        guard let whole = DERElement(bytes[...]), let body = whole.children.first else { return }
        var fields = body.children[...]
        // A certificate of version 1 has no version field.
        if fields.first?.tag == 0xA0 { fields = fields.dropFirst() }
        let parts = Array(fields)
        guard parts.count >= 6 else { return }
        issuer = Self.name(parts[2])
        subject = Self.name(parts[4])
        isSelfIssued = parts[2].content == parts[4].content
        let extensions = parts.first { $0.tag == 0xA3 }?.children.first?.children ?? []
        // subjectAltName, 2.5.29.17
        guard let list = extensions.first(where: { $0.children.first?.content.elementsEqual([0x55, 0x1D, 0x11]) == true }),
            let value = list.children.last, let names = DERElement(value.content)
        else { return }
        self.names = names.children.prefix(100).compactMap(Self.alternative)
    }

    private static func alternative(_ element: DERElement) -> String? {
        switch element.tag {
        case 0x81, 0x82, 0x86: return String(decoding: element.content, as: UTF8.self)
        case 0x87:
            let bytes = Array(element.content)
            if bytes.count == 4 { return bytes.map(String.init).joined(separator: ".") }
            guard bytes.count == 16 else { return nil }
            var text = [CChar](repeating: 0, count: 64)
            guard inet_ntop(AF_INET6, bytes, &text, socklen_t(text.count)) != nil else { return nil }
            return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        default: return nil
        }
    }

    private static let attributes: [[UInt8]: String] = [
        [0x55, 4, 3]: "CN", [0x55, 4, 6]: "C", [0x55, 4, 7]: "L", [0x55, 4, 8]: "ST", [0x55, 4, 10]: "O", [0x55, 4, 11]: "OU",
    ]

    private static func name(_ element: DERElement) -> String {
        element.children.prefix(20).flatMap(\.children).compactMap { pair in
            guard let kind = pair.children.first, let value = pair.children.last,
                let name = attributes[Array(kind.content)]
            else { return nil }
            // A BMPString has two bytes per character.
            let text =
                value.tag == 0x1E
                ? String(bytes: value.content, encoding: .utf16BigEndian) ?? "" : String(decoding: value.content, as: UTF8.self)
            return "\(name)=\(text)"
        }.joined(separator: ", ")
    }

    /// Whether one of the certificate's names matches a host (RFC 9525, section 6.3).
    func covers(_ host: String) -> Bool {
        let host = host.lowercased()
        return names.contains { name in
            let name = name.lowercased()
            guard name.hasPrefix("*.") else { return name == host }
            return host.firstIndex(of: ".").map { host[$0...] == name.dropFirst() } ?? false
        }
    }
}

/// A DER element (X.690).
struct DERElement {
    let tag: UInt8
    let content: ArraySlice<UInt8>
    private let after: ArraySlice<UInt8>

    init?(_ bytes: ArraySlice<UInt8>) {
        var rest = bytes
        guard let tag = rest.popFirst(), let first = rest.popFirst() else { return nil }
        var length = Int(first)
        if first >= 0x80 {
            let size = Int(first & 0x7F)
            guard 1...4 ~= size, rest.count >= size else { return nil }
            length = rest.prefix(size).reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(size)
        }
        guard length <= rest.count else { return nil }
        self.tag = tag
        content = rest.prefix(length)
        after = rest.dropFirst(length)
    }

    /// The elements in the content, up to the first malformed one; at most 1000.
    var children: [DERElement] {
        var result: [DERElement] = []
        var rest = content
        while result.count < 1000, let next = DERElement(rest) {
            result.append(next)
            rest = next.after
        }
        return result
    }
}
