// SPDX-License-Identifier: Apache-2.0

/// The validation result of a field's name and value, independent of the field's position in its section (RFC 9113, sections 8.2
/// and 8.3; RFC 9114, sections 4.2 and 4.3).
///
/// HPACK's table stores the result with each entry, so that an indexed field is not validated again.
struct HPACKFieldVerdict: Sendable {
    typealias Fault = FieldSection.Fault

    enum Name: UInt8, Sendable {
        case field
        case status
        /// Any other pseudo-header field.
        case pseudoField
        case faulty
    }

    var name = Name.field
    var nameFault: Fault?
    var valueFault: Fault?

    /// Validates a name.
    @inline(__always)
    mutating func validateName(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) {
        name = .field
        nameFault = nil
        guard let first = range.first else { return refuse(.emptyName) }
        guard bytes[first] != UInt8(ascii: ":") else {
            let isStatus = range.count == 7 && ASCII.matches(bytes, first, ":status") && bytes[first &+ 1] == UInt8(ascii: "s")
            name = isStatus ? .status : .pseudoField
            nameFault = isStatus ? nil : .unknownPseudoField
            return
        }
        var upperCase = 0
        for position in range {
            let byte = bytes[position]
            guard ASCII.isTokenCharacter(byte) else { return refuse(.invalidName) }
            if byte &- UInt8(ascii: "A") < 26 { upperCase &+= 1 }
        }
        guard upperCase == 0 else { return refuse(.upperCaseName) }
        // "Any field that indicates connection-specific properties" makes a message malformed (section 8.2.2). The exception for
        // `TE` applies only to requests.
        if FieldName(bytes, first, range.count).isConnectionSpecific { refuse(.connectionField) }
    }

    /// Validates a value (section 8.2.1).
    @inline(__always)
    mutating func validateValue(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) {
        valueFault = nil
        guard let first = range.first, let last = range.last else { return }
        if ASCII.isWhitespace(bytes[first]) || ASCII.isWhitespace(bytes[last]) { valueFault = .whitespaceAroundValue }
        var position = ByteScan.firstControl(bytes, from: range.lowerBound, to: range.upperBound)
        while position < range.upperBound {
            switch bytes[position] {
            case 0, 0x0A, 0x0D:
                valueFault = .invalidValue
                return
            default: position = ByteScan.firstControl(bytes, from: position &+ 1, to: range.upperBound)
            }
        }
    }

    private mutating func refuse(_ fault: Fault) {
        name = .faulty
        nameFault = fault
    }

    /// Parses a three-digit status code, or returns nil.
    @inline(__always)
    static func status(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> Int? {
        guard range.count == 3 else { return nil }
        let hundreds = bytes[range.lowerBound] &- UInt8(ascii: "0")
        let tens = bytes[range.lowerBound &+ 1] &- UInt8(ascii: "0")
        let ones = bytes[range.lowerBound &+ 2] &- UInt8(ascii: "0")
        guard hundreds <= 9, tens <= 9, ones <= 9 else { return nil }
        return Int(hundreds) &* 100 &+ Int(tens) &* 10 &+ Int(ones)
    }
}
