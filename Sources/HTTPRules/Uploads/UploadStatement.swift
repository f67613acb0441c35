//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPWire
import RawStructuredFieldValues

/// What a response says of an upload (draft-ietf-httpbis-resumable-upload-12, section 4.1).
///
/// A field that is not what the draft has it be counts as absent.
package struct UploadStatement: Sendable, Hashable {
    /// The number of the version that the server speaks.
    package var version: Int?
    /// How many bytes the server has.
    package var offset: Int64?
    package var isComplete: Bool?
    /// Bytes of the whole upload.
    package var length: Int64?
    package var limits: UploadLimits?

    package init() {}

    package init(_ headers: HeaderBlock) {
        version = Self.integer("Upload-Draft-Interop-Version", headers).map { Int(clamping: $0) }
        offset = Self.integer("Upload-Offset", headers)
        length = Self.integer("Upload-Length", headers)
        // Some servers name the field of another version than the one they state.
        isComplete = Self.boolean("Upload-Complete", headers) ?? Self.boolean("Upload-Incomplete", headers).map { !$0 }
        limits = headers.joined("Upload-Limit").flatMap { UploadLimits($0) }
    }

    private static func item(_ name: String, _ headers: HeaderBlock) -> RFC9651BareItem? {
        guard let text = headers.joined(name) else { return nil }
        var parser = StructuredFieldValueParser(Array(text.utf8))
        return try? parser.parseItemFieldValue().rfc9651BareItem
    }

    private static func integer(_ name: String, _ headers: HeaderBlock) -> Int64? {
        guard case .integer(let value)? = item(name, headers), value >= 0 else { return nil }
        return value
    }

    private static func boolean(_ name: String, _ headers: HeaderBlock) -> Bool? {
        if case .bool(let value)? = item(name, headers) { value } else { nil }
    }
}

/// What a server takes of an upload (`Upload-Limit`, draft 12, section 4.1.4).
package struct UploadLimits: Sendable, Hashable, Codable {
    /// Bytes of a whole upload.
    package var maximumSize: Int64?
    package var minimumSize: Int64?
    /// Bytes of one request.
    package var maximumAppendSize: Int64?
    /// Bytes of one request that is not the last.
    package var minimumAppendSize: Int64?
    /// Seconds from the response on in which the upload can be continued.
    package var maximumAge: Int64?

    package init() {}

    /// Reads the field's value; nil where it is no dictionary, or holds a value of another type.
    package init?(_ text: String) {
        var parser = StructuredFieldValueParser(Array(text.utf8))
        guard let members = try? parser.parseDictionaryFieldValue() else { return nil }
        for (key, member) in members {
            let path: WritableKeyPath<UploadLimits, Int64?>
            switch key {
            case "max-size": path = \.maximumSize
            case "min-size": path = \.minimumSize
            case "max-append-size": path = \.maximumAppendSize
            case "min-append-size": path = \.minimumAppendSize
            // Drafts 04 and 05 call it so.
            case "max-age", "expires": path = \.maximumAge
            default: continue
            }
            guard case .item(let item) = member, case .integer(let value) = item.rfc9651BareItem, value >= 0 else {
                return nil
            }
            self[keyPath: path] = value
        }
    }

    /// What of these is new replaces what was known.
    package func updated(by newer: UploadLimits?) -> UploadLimits {
        guard let newer else { return self }
        var limits = self
        limits.maximumSize = newer.maximumSize ?? maximumSize
        limits.minimumSize = newer.minimumSize ?? minimumSize
        limits.maximumAppendSize = newer.maximumAppendSize ?? maximumAppendSize
        limits.minimumAppendSize = newer.minimumAppendSize ?? minimumAppendSize
        limits.maximumAge = newer.maximumAge ?? maximumAge
        return limits
    }
}
