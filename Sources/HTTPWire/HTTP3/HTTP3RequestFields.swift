// SPDX-License-Identifier: Apache-2.0

/// The fields of a request's head as HTTP/3 sends them (RFC 9114, section 4.3.1), in one buffer for a QPACK encoder.
///
/// The rules are those of ``HTTP2RequestEncoder``.
package struct HTTP3RequestFields: Sendable {
    package struct Field: Sendable, Hashable {
        /// The place of the name, in lower case, in the buffer.
        package var name: Range<Int>
        package var value: Range<Int>
        /// Whether the field must never be in a table that others could probe (RFC 9204, section 7.1).
        package var isSecret: Bool
    }

    /// The number of bytes that SETTINGS_MAX_FIELD_SECTION_SIZE counts for a field besides its name and value.
    private static let listOverhead = 32

    package private(set) var bytes: [UInt8] = []
    /// The fields in the order of sending, with the pseudo-header fields first.
    package private(set) var fields: [Field] = []
    /// The size as SETTINGS_MAX_FIELD_SECTION_SIZE counts it (section 4.2.2).
    package private(set) var listBytes = 0

    /// Creates the fields of a head.
    ///
    /// `Host` becomes `:authority`. `priority` (RFC 9218, section 4) is added if the head has no `Priority` field. A CONNECT with a
    /// protocol name has the pseudo-header fields of other methods and `:protocol` (RFC 9220).
    package init(
        _ head: borrowing RequestHead, scheme: StaticString, priority: StaticString?, protocolName: StaticString? = nil
    ) throws(InvalidRequest) {
        try RequestFields.validate(head, protocolName: protocolName)
        let headers = head.headers
        // The names of the pseudo-header fields and of the priority, and the longest constants.
        var length = 128 + head.method.utf8.count + head.target.utf8.count
        for line in headers.lines { length += Int(line.nameLength) + Int(line.valueLength) }
        bytes.reserveCapacity(length)
        fields.reserveCapacity(headers.count + (headers.contains(.cookie) ? 16 : 6))
        RequestFields.forEach(of: head, scheme: scheme, priority: priority, protocolName: protocolName) {
            name, value, treatment in
            append(name, value, treatment)
        }
    }

    private mutating func append(
        _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ treatment: HPACKRequestNames.Treatment
    ) {
        let start = bytes.count
        bytes.append(contentsOf: name)
        for index in start..<bytes.count { bytes[index] = ASCII.lowercased(bytes[index]) }
        let middle = bytes.count
        bytes.append(contentsOf: value)
        let isSecret =
            switch treatment {
            case .neverIndexed: true
            case .cookie: value.count < RequestFields.minimumIndexedCookieLength
            case .indexed, .notIndexed, .te, .omitted: false
            }
        fields.append(Field(name: start..<middle, value: middle..<bytes.count, isSecret: isSecret))
        listBytes += Self.listOverhead + name.count + value.count
    }
}
