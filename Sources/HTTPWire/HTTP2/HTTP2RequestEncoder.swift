// SPDX-License-Identifier: Apache-2.0

/// Encodes request heads as field blocks (RFC 9113, section 8.3.1; RFC 7541).
///
/// Every block must reach the peer, in the order of encoding: each block may have changed the table.
package struct HTTP2RequestEncoder: Sendable {
    private static let names = HPACKRequestNames.shared

    /// The maximum number of bytes for a field besides its name and value: its pattern, its index, and the lengths of its name and
    /// value.
    private static let fieldOverhead = 16
    /// The maximum number of bytes for pseudo-header fields, the priority and table size updates.
    private static let headOverhead = 128
    /// The number of bytes that SETTINGS_MAX_HEADER_LIST_SIZE counts for a field besides its name and value.
    private static let listOverhead = 32
    /// The maximum length of scheme, priority and protocol together.
    private static let longestConstants = 48

    private var table = HPACKEncodingTable()
    /// The smallest table size since the last block; nil if no update is due.
    ///
    /// The next block must begin with a table size update to this size (RFC 7541, section 4.2).
    private var pendingTableSize: Int?
    /// A buffer for a name that is written as a literal.
    private var lowered: [UInt8] = []

    package init() {}

    /// Applies a SETTINGS_HEADER_TABLE_SIZE that the peer announced; at most 4096 bytes are used.
    ///
    /// If a SETTINGS frame contains several values, call this with the smallest value first.
    package mutating func setTableLimit(_ bytes: Int) {
        let size = max(0, min(bytes, HPACKEncodingTable.largestSize))
        guard size != table.maximumSize else { return }
        pendingTableSize = min(pendingTableSize ?? size, size)
        table.resize(to: size)
    }

    /// Returns the maximum number of bytes written for a head.
    package static func maximumLength(of head: borrowing RequestHead) -> Int {
        var length = headOverhead + head.method.utf8.count + head.target.utf8.count
        for line in head.headers.lines {
            // Each crumb of a cookie has an overhead of three bytes, and replaces a separator of two.
            let value = Int(line.valueLength)
            length += fieldOverhead + Int(line.nameLength) + (line.nameLength == 6 ? 2 * value : value)
        }
        return length
    }

    /// Returns the size of a head as SETTINGS_MAX_HEADER_LIST_SIZE counts it: "the length of the name and value in octets plus an
    /// overhead of 32 octets for each field" (RFC 9113, section 6.5.2), summed over all fields that would be sent.
    package static func listSize(
        of head: borrowing RequestHead, scheme: StaticString, priority: StaticString?, protocolName: StaticString? = nil
    ) -> Int {
        var size = 0
        RequestFields.forEach(of: head, scheme: scheme, priority: priority, protocolName: protocolName) { name, value, _ in
            size += listOverhead + name.count + value.count
        }
        return size
    }

    /// Writes a field block and returns its length.
    ///
    /// If this function throws, the encoder is unchanged.
    ///
    /// The buffer must have space for ``maximumLength(of:)`` bytes. `Host` becomes `:authority`. `priority` (RFC 9218, section 4)
    /// is added if the head has no `Priority` field. A CONNECT with a protocol name has the pseudo-header fields of other methods
    /// and `:protocol` (RFC 8441).
    package mutating func encode(
        _ head: borrowing RequestHead,
        scheme: StaticString,
        priority: StaticString?,
        protocolName: StaticString? = nil,
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(InvalidRequest) -> Int {
        try RequestFields.validate(head, protocolName: protocolName)
        let constants =
            scheme.utf8CodeUnitCount + (priority?.utf8CodeUnitCount ?? 0) + (protocolName?.utf8CodeUnitCount ?? 0)
        guard buffer.count >= Self.maximumLength(of: head), constants <= Self.longestConstants else { throw .bufferTooSmall }
        var output = HPACKOutput(buffer: buffer)
        writeTableSizes(&output)
        writeMethod(head.method, &output)
        if let protocolName {
            writeIndexed(RequestFields.bytes(RequestFields.protocolName), RequestFields.bytes(protocolName), index: 0, &output)
        }
        if RequestFields.isTunnel(head, protocolName) {
            var target = head.target
            target.withUTF8 {
                writeIndexed(RequestFields.bytes(RequestFields.authority), UnsafeRawBufferPointer($0), index: 1, &output)
            }
        } else {
            // The order is the same as in RFC 7541's examples and in Safari.
            writeScheme(scheme, &output)
            writePath(head.target, &output)
            writeAuthority(head.headers, &output)
        }
        let hasPriority = writeFields(head.headers, &output)
        if let priority, !hasPriority {
            writeIndexed(RequestFields.bytes(RequestFields.priority), RequestFields.bytes(priority), index: 0, &output)
        }
        return output.position
    }

    private mutating func writeTableSizes(_ output: inout HPACKOutput) {
        guard let smallest = pendingTableSize else { return }
        pendingTableSize = nil
        if smallest < table.maximumSize { output.put(smallest, prefix: 5, pattern: 0x20) }
        output.put(table.maximumSize, prefix: 5, pattern: 0x20)
    }

    // MARK: Pseudo-header fields

    private mutating func writeMethod(_ method: String, _ output: inout HPACKOutput) {
        switch method {
        case "GET": output.put(0x82)
        case "POST": output.put(0x83)
        default:
            var method = method
            method.withUTF8 {
                writeIndexed(RequestFields.bytes(RequestFields.method), UnsafeRawBufferPointer($0), index: 2, &output)
            }
        }
    }

    private func writeScheme(_ scheme: StaticString, _ output: inout HPACKOutput) {
        let scheme = RequestFields.bytes(scheme)
        switch scheme.count {
        case 5 where ASCII.matches(scheme, 0, "https"): output.put(0x87)
        case 4 where ASCII.matches(scheme, 0, "http"): output.put(0x86)
        default:
            output.put(6, prefix: 4, pattern: 0)
            output.putString(scheme)
        }
    }

    private mutating func writeAuthority(_ headers: borrowing HeaderBlock, _ output: inout HPACKOutput) {
        guard let index = headers.index(of: .host) else { return }
        let line = headers.lines[index]
        headers.bytes.withUnsafeBytes { bytes in
            writeIndexed(RequestFields.bytes(RequestFields.authority), HPACKOutput.trimmed(bytes, line.value), index: 1, &output)
        }
    }

    private func writePath(_ target: String, _ output: inout HPACKOutput) {
        guard target != "/" else { return output.put(0x84) }
        guard target != "/index.html" else { return output.put(0x85) }
        var target = target
        target.withUTF8 { target in
            output.put(4, prefix: 4, pattern: 0)
            output.putString(UnsafeRawBufferPointer(target))
        }
    }

    // MARK: Fields

    /// Writes the fields and returns whether they contain a `Priority`.
    private mutating func writeFields(_ headers: borrowing HeaderBlock, _ output: inout HPACKOutput) -> Bool {
        let hasConnection = headers.contains(.connection)
        let lines = headers.lines
        headers.bytes.withUnsafeBytes { bytes in
            for line in lines {
                let name = UnsafeRawBufferPointer(rebasing: bytes[line.name])
                let hash = HPACKHash.name(name)
                let known = Self.names.find(name, hash: hash)
                let treatment = known?.treatment ?? .indexed
                let value = HPACKOutput.trimmed(bytes, line.value)
                guard RequestFields.isSent(name, value, treatment),
                    !hasConnection || !RequestFields.isConnectionSpecific(name, treatment, headers)
                else {
                    continue
                }
                let index = Int(known?.index ?? 0)
                switch treatment {
                case .indexed, .te:
                    writeIndexed(HPACKEncodingTable.Field(name: name, value: value, nameHash: hash), index, &output)
                case .notIndexed: writeUnindexed(name, value, index, pattern: 0, &output)
                case .neverIndexed: writeUnindexed(name, value, index, pattern: 0x10, &output)
                case .cookie: RequestFields.forEachCrumb(value) { writeCrumb(name, $0, hash, &output) }
                case .omitted: continue
                }
            }
        }
        return headers.contains(.priority)
    }

    private mutating func writeCrumb(
        _ name: UnsafeRawBufferPointer,
        _ crumb: UnsafeRawBufferPointer,
        _ hash: UInt32,
        _ output: inout HPACKOutput
    ) {
        guard crumb.count >= RequestFields.minimumIndexedCookieLength else {
            return writeUnindexed(name, crumb, 32, pattern: 0x10, &output)
        }
        writeIndexed(HPACKEncodingTable.Field(name: name, value: crumb, nameHash: hash), 32, &output)
    }

    // MARK: Representations

    private mutating func writeIndexed(
        _ name: UnsafeRawBufferPointer,
        _ value: UnsafeRawBufferPointer,
        index: Int,
        _ output: inout HPACKOutput
    ) {
        writeIndexed(HPACKEncodingTable.Field(name: name, value: value, nameHash: HPACKHash.name(name)), index, &output)
    }

    /// Writes the index of the whole field, or a literal with incremental indexing (RFC 7541, sections 6.1 and 6.2.1).
    private mutating func writeIndexed(_ field: HPACKEncodingTable.Field, _ staticIndex: Int, _ output: inout HPACKOutput) {
        // An entry that would fill most of the table is not added. nghttp2 does the same.
        guard field.size <= table.maximumSize / 4 * 3 else {
            return writeUnindexed(field.name, field.value, staticIndex, pattern: 0, &output)
        }
        if let index = table.index(of: field) { return output.put(index, prefix: 7, pattern: 0x80) }
        // Apart from pseudo-header fields, `accept-encoding: gzip, deflate` (index 16) is the only static entry that has a value.
        if staticIndex == 16, field.value.count == 13, field.value.elementsEqual(RequestFields.bytes("gzip, deflate")) {
            return output.put(0x90)
        }
        let index = staticIndex != 0 ? staticIndex : table.index(ofNameOf: field) ?? 0
        output.put(index, prefix: 6, pattern: 0x40)
        if index == 0 { writeName(field.name, &output) }
        output.putString(field.value)
        table.add(field)
    }

    /// Writes a literal that is not added to the table (RFC 7541, sections 6.2.2 and 6.2.3).
    private mutating func writeUnindexed(
        _ name: UnsafeRawBufferPointer,
        _ value: UnsafeRawBufferPointer,
        _ index: Int,
        pattern: UInt8,
        _ output: inout HPACKOutput
    ) {
        output.put(index, prefix: 4, pattern: pattern)
        if index == 0 { writeName(name, &output) }
        output.putString(value)
    }

    /// Writes a name in lowercase: "Field names MUST be converted to lowercase when constructing an HTTP/2 message" (RFC 9113,
    /// section 8.2).
    private mutating func writeName(_ name: UnsafeRawBufferPointer, _ output: inout HPACKOutput) {
        lowered.removeAll(keepingCapacity: true)
        for byte in name { lowered.append(ASCII.lowercased(byte)) }
        lowered.withUnsafeBytes { output.putString($0) }
    }
}
