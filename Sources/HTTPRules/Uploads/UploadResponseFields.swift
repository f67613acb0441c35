// SPDX-License-Identifier: Apache-2.0

package import HTTPWire
import RawStructuredFieldValues

/// The upload fields of a response (draft-ietf-httpbis-resumable-upload-12, section 4.1).
///
/// A field with an invalid value counts as absent.
package struct UploadResponseFields: Sendable, Hashable {
    /// The number of the version that the server uses.
    package var version: Int?
    /// The number of bytes that the server has received.
    package var offset: Int64?
    package var isComplete: Bool?
    /// The length of the whole upload in bytes.
    package var length: Int64?
    package var limits: UploadLimits?

    package init() {}

    package init(_ headers: HeaderBlock) {
        version = Self.integer("Upload-Draft-Interop-Version", headers).map { Int(clamping: $0) }
        offset = Self.integer("Upload-Offset", headers)
        length = Self.integer("Upload-Length", headers)
        // Some servers send the field of a version other than the version that they state.
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

/// The server's limits for an upload (`Upload-Limit`, draft 12, section 4.1.4).
package struct UploadLimits: Sendable, Hashable, Codable {
    /// The maximum size of the whole upload in bytes.
    package var maximumSize: Int64?
    package var minimumSize: Int64?
    /// The maximum content size of one request in bytes.
    package var maximumAppendSize: Int64?
    /// The minimum content size in bytes of a request that is not the last one.
    package var minimumAppendSize: Int64?
    /// How long after the response the upload can be continued, in seconds.
    package var maximumAge: Int64?

    package init() {}

    /// Parses the value of the field; returns nil if the value is not a dictionary or contains an item of the wrong type.
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
            // `expires` is the name in drafts 04 and 05.
            case "max-age", "expires": path = \.maximumAge
            default: continue
            }
            guard case .item(let item) = member, case .integer(let value) = item.rfc9651BareItem, value >= 0 else {
                return nil
            }
            self[keyPath: path] = value
        }
    }

    /// Returns these limits with the newer values taking precedence.
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
