// SPDX-License-Identifier: Apache-2.0

/// A decoded field section: the header or trailer section of a response (RFC 9113, section 8.1; RFC 9114, section 4.1).
package struct FieldSection: Sendable {
    /// Why a section is malformed (RFC 9113, sections 8.2 and 8.3; RFC 9114, sections 4.2 and 4.3) or too large.
    package enum Fault: UInt8, Sendable, Hashable, CaseIterable {
        case emptyName = 1
        case upperCaseName
        case invalidName
        /// A pseudo-header field follows other fields.
        case pseudoFieldAfterFields
        case repeatedStatus
        /// A pseudo-header field for requests, or an unknown pseudo-header field.
        case unknownPseudoField
        case malformedStatus
        /// The status 101, which only HTTP/1.1 supports (RFC 9113, section 8.6; RFC 9114, section 4.5).
        case switchingProtocols
        /// `Connection` and other connection-specific fields.
        case connectionField
        /// NUL, CR or LF.
        case invalidValue
        case whitespaceAroundValue
        /// The section has more bytes or lines than the limits allow.
        case tooLarge

        package var message: String {
            switch self {
            case .emptyName: "a field has no name"
            case .upperCaseName: "a field name contains uppercase letters"
            case .invalidName: "a field name is not a token"
            case .pseudoFieldAfterFields: "a pseudo-header field follows other fields"
            case .repeatedStatus: "the pseudo-header field :status is repeated"
            case .unknownPseudoField: "a pseudo-header field is not allowed in responses"
            case .malformedStatus: "the value of :status is not three digits"
            case .switchingProtocols: "the status is 101, which only HTTP/1.1 supports"
            case .connectionField: "a field is specific to HTTP/1 connections"
            case .invalidValue: "the value of a field contains CR, LF or NUL"
            case .whitespaceAroundValue: "the value of a field begins or ends with whitespace"
            case .tooLarge: "the field section is larger than the limit"
            }
        }
    }

    /// The fields in order without the pseudo-header fields, with their names as received.
    ///
    /// If the section has a fault, this block contains only the fields before the fault.
    package var headers: HeaderBlock
    /// The three-digit value of `:status`.
    package var status: Int?
    /// The first fault found.
    package var fault: Fault?
    /// The size as SETTINGS_MAX_HEADER_LIST_SIZE and SETTINGS_MAX_FIELD_SECTION_SIZE count it: names, values and 32 bytes for each
    /// field (RFC 9113, section 6.5.2; RFC 9114, section 4.2.2).
    package var listBytes: Int

    package init(headers: HeaderBlock, status: Int? = nil, fault: Fault? = nil, listBytes: Int = 0) {
        self.headers = headers
        self.status = status
        self.fault = fault
        self.listBytes = listBytes
    }

    /// Whether this can be a trailer section: "trailers MUST NOT include pseudo-header fields" (RFC 9113, section 8.1).
    package var mayBeTrailers: Bool { status == nil && fault == nil }
}
