// SPDX-License-Identifier: Apache-2.0

/// Collects the fields of one section, as HPACK and QPACK decoders produce them, up to its first fault.
///
/// A section that is malformed or too large is read to its end, because the tables of the decoder depend on all of its fields, but
/// the fields after the fault are not kept.
struct FieldSectionCollector: Sendable {
    struct Limits: Sendable {
        /// The maximum of ``FieldSection/listBytes``.
        var listBytes: Int
        /// The maximum number of fields besides the pseudo-header fields.
        var lines: Int
    }

    /// The maximum size of the text buffer that is reused for the next section.
    private static let maximumReusedText = 16_384

    private let limits: Limits
    /// The names and values of the section, followed by the field being read.
    var text: [UInt8] = []
    private(set) var textEnd = 0
    private var lines: [HeaderBlock.Line] = []
    private var section = FieldSection(headers: HeaderBlock())

    init(limits: Limits) {
        self.limits = limits
        lines.reserveCapacity(16)
    }

    /// Whether the section has passed a limit; none of its later fields will be kept.
    var isTooLarge: Bool { section.fault == .tooLarge || section.listBytes > limits.listBytes }

    mutating func begin() {
        section = FieldSection(headers: HeaderBlock())
        textEnd = 0
        if !lines.isEmpty { lines.removeAll(keepingCapacity: true) }
    }

    mutating func end() -> FieldSection {
        section.headers = makeBlock()
        return section
    }

    private mutating func makeBlock() -> HeaderBlock {
        defer { if text.count > Self.maximumReusedText { text = [] } }
        guard !lines.isEmpty else { return HeaderBlock() }
        let end = textEnd
        let bytes = text.withUnsafeBytes { [UInt8](UnsafeRawBufferPointer(rebasing: $0[..<end])) }
        let block = HeaderBlock(bytes: bytes, lines: Array(lines[...]))
        lines.removeAll(keepingCapacity: lines.count <= 64)
        return block
    }

    /// Adds to the size of the section that of a field with this size of name and value.
    @inline(__always)
    mutating func count(_ bytes: Int) { section.listBytes &+= bytes &+ 32 }

    /// Whether to keep a field whose size was counted: neither the field nor the section before it has a fault.
    @inline(__always)
    mutating func mayKeep(_ verdict: HPACKFieldVerdict) -> Bool {
        guard section.fault == nil else { return false }
        guard section.listBytes <= limits.listBytes else { return refuse(.tooLarge) }
        if let fault = verdict.nameFault { return refuse(fault) }
        if let fault = verdict.valueFault { return refuse(fault) }
        return true
    }

    /// Keeps the field whose name and value are in `text`, from `textEnd` on.
    @inline(__always)
    mutating func keep(nameLength: Int, valueLength: Int) {
        guard lines.count < limits.lines else {
            refuse(.tooLarge)
            return
        }
        lines.append(
            HeaderBlock.Line(
                nameStart: textEnd, nameLength: nameLength, valueStart: textEnd &+ nameLength, valueLength: valueLength))
        textEnd &+= nameLength &+ valueLength
    }

    /// Takes the value of `:status`; nil if the value is malformed.
    mutating func takeStatus(_ status: Int?) {
        guard section.status == nil else {
            refuse(.repeatedStatus)
            return
        }
        guard lines.isEmpty else {
            refuse(.pseudoFieldAfterFields)
            return
        }
        guard let status else {
            refuse(.malformedStatus)
            return
        }
        section.status = status
        if status == 101 { refuse(.switchingProtocols) }
    }

    @discardableResult
    private mutating func refuse(_ fault: FieldSection.Fault) -> Bool {
        section.fault = fault
        return false
    }

    // MARK: Text

    /// Makes space in `text` for bytes after `textEnd`, or after `start`.
    @inline(__always)
    mutating func reserveText(_ count: Int, from start: Int? = nil) {
        let wanted = (start ?? textEnd) &+ count
        if wanted > text.count { growText(to: wanted) }
    }

    @inline(never)
    private mutating func growText(to wanted: Int) {
        text.append(contentsOf: repeatElement(0, count: max(wanted, 2 * text.count, 1_024) - text.count))
    }

    /// Copies bytes into `text` at a position; there must be space for them.
    @inline(__always)
    mutating func copy(_ source: UnsafeRawBufferPointer, to start: Int) {
        text.withUnsafeMutableBytes { text in
            UnsafeMutableRawBufferPointer(rebasing: text[start..<start &+ source.count]).copyMemory(from: source)
        }
    }
}
