// SPDX-License-Identifier: Apache-2.0

import SwiftASN1
import X509

/// A distinguished name in a form in which equal names are the same (RFC 5280, section 7.1).
///
/// Texts are prepared for comparison as in RFC 4518, section 2, except that Unicode's compatibility forms (fullwidth letters, for
/// example) are not decomposed: names that differ, and contain such characters, may still be equal.
struct DirectoryName {
    private struct Attribute: Equatable {
        enum Value: Equatable {
            case text(String)
            case encoded([UInt8])
        }

        var type: ASN1ObjectIdentifier
        var value: Value
    }

    /// The attributes of each part of the name, in an order of our own.
    private var parts: [[Attribute]] = []
    /// Whether another name, if it has the same property, is equal only if it is the same.
    private var isComparable = true

    init(_ name: DistinguishedName) {
        for part in name {
            var attributes: [Attribute] = []
            for attribute in part { attributes.append(Attribute(type: attribute.type, value: value(of: attribute))) }
            if attributes.count > 1 { attributes.sort { "\($0)" < "\($1)" } }
            parts.append(attributes)
        }
    }

    /// Returns whether a name begins with this one.
    func relation(to name: DirectoryName) -> NameSubtree.Relation {
        if name.parts.count < parts.count { return .outside }
        if name.parts.starts(with: parts) { return .inside }
        return isComparable && name.isComparable ? .outside : .undecided
    }

    private mutating func value(of attribute: RelativeDistinguishedName.Attribute) -> Attribute.Value {
        if let text = String(attribute.value) { return .text(prepared(text)) }
        var serializer = DER.Serializer()
        guard (try? serializer.serialize(ASN1Any(attribute.value))) != nil else {
            isComparable = false
            return .encoded([])
        }
        let bytes = serializer.serializedBytes
        return Self.text(inDER: bytes).map { .text(prepared($0)) } ?? .encoded(bytes)
    }

    /// Decodes the kinds of strings that X509 does not decode; nil for other values.
    private static func text(inDER bytes: [UInt8]) -> String? {
        guard let node = try? DER.parse(bytes), case .primitive(let content) = node.content else { return nil }
        func units<Unit: FixedWidthInteger>(_: Unit.Type) -> [Unit]? {
            let size = MemoryLayout<Unit>.size
            guard content.count % size == 0 else { return nil }
            var rest = content
            return (0..<content.count / size).map { _ in
                defer { rest = rest.dropFirst(size) }
                return rest.prefix(size).reduce(0) { $0 << 8 | Unit($1) }
            }
        }
        switch node.identifier {
        case .bmpString: return units(UInt16.self).map { String(decoding: $0, as: UTF16.self) }
        case .universalString: return units(UInt32.self).map { String(decoding: $0, as: UTF32.self) }
        // T.61 is hardly ever used as intended: most such strings are Latin-1, and most of these are ASCII.
        case .teletexString, .visibleString, .numericString:
            return String(String.UnicodeScalarView(content.map(Unicode.Scalar.init)))
        default: return nil
        }
    }

    /// Prepares a text: ignores case, leading, trailing and repeated spaces, and characters that are not visible.
    private mutating func prepared(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        var isAfterSpace = false
        for scalar in text.unicodeScalars {
            let properties = scalar.properties
            if properties.isWhitespace {
                isAfterSpace = !result.isEmpty
                continue
            }
            if properties.isDefaultIgnorableCodePoint || [.control, .format].contains(properties.generalCategory) { continue }
            if isAfterSpace { result.append(" ") }
            isAfterSpace = false
            result += folded(scalar)
        }
        return String(result)
    }

    private mutating func folded(_ scalar: Unicode.Scalar) -> String.UnicodeScalarView {
        var folded = scalar.properties.lowercaseMapping.unicodeScalars
        if scalar.isASCII { return folded }
        if folded.contains(where: \.properties.changesWhenNFKCCaseFolded) {
            // "ß" is "ss", and "ς" is "σ".
            folded = String(folded).uppercased().lowercased().unicodeScalars
        }
        let isUnclear = folded.contains { scalar in
            let properties = scalar.properties
            return properties.changesWhenNFKCCaseFolded || scalar == "\u{FFFD}"
                || [.unassigned, .privateUse].contains(properties.generalCategory)
        }
        if isUnclear { isComparable = false }
        return folded
    }
}
