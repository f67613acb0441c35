// SPDX-License-Identifier: Apache-2.0

/// Collects and validates the field sections of responses, whose fields a QPACK decoder passes one by one (RFC 9114, sections 4.2
/// and 4.3).
///
/// The rules and limits are those of HTTP/2. A section with a fault is read to its end, but what follows the fault is not kept, so
/// that a section occupies at most the memory that the limits allow.
package struct HTTP3FieldSectionReader: Sendable {
    private var collector: FieldSectionCollector

    package init(limits: HTTP2FrameReader.Limits = HTTP2FrameReader.Limits()) {
        collector = FieldSectionCollector(limits: .init(listBytes: limits.headerListBytes, lines: limits.headerLines))
    }

    /// Whether the section has passed a limit; its remaining fields need not be decoded.
    package var isTooLarge: Bool { collector.isTooLarge }

    /// Begins a section, and discards an earlier one that was not ended.
    package mutating func begin() { collector.begin() }

    package mutating func add(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        collector.count(name.count &+ value.count)
        var verdict = HPACKFieldVerdict()
        // Fields that would not be kept are not validated either.
        guard collector.mayKeep(verdict) else { return }
        verdict.validateName(name, 0..<name.count)
        verdict.validateValue(value, 0..<value.count)
        guard collector.mayKeep(verdict) else { return }
        if verdict.name == .status { return collector.takeStatus(HPACKFieldVerdict.status(value, 0..<value.count)) }
        let start = collector.textEnd
        collector.reserveText(name.count &+ value.count)
        collector.copy(name, to: start)
        collector.copy(value, to: start &+ name.count)
        collector.keep(nameLength: name.count, valueLength: value.count)
    }

    /// Ends the section and returns it.
    package mutating func end() -> FieldSection {
        defer { collector.begin() }
        return collector.end()
    }
}
