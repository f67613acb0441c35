// SPDX-License-Identifier: Apache-2.0

/// Checks byte by byte whether the text after a chunk size consists of chunk extensions (RFC 9112, section 7.1.1).
///
///     chunk-ext      = *( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] )
///     chunk-ext-name = token
///     chunk-ext-val  = token / quoted-string
///
/// Intermediaries that follow this grammar and intermediaries that do not must find the end of the line at the same position.
/// Therefore only extensions and whitespace are accepted between a size and its line end.
struct ChunkExtensionReader: Sendable {
    private enum State: Sendable {
        /// After the size, with only whitespace so far.
        case size
        case beforeName
        case name
        /// Whitespace after a name.
        case afterName
        case beforeValue
        case value
        case quoted
        case quotedPair
        /// Directly after the closing quotation mark.
        case quotedEnd
        /// Whitespace after a value.
        case afterValue
    }

    private var state = State.size

    /// Whether the line may end at the current position.
    var mayEndHere: Bool {
        switch state {
        case .size, .name, .value, .quotedEnd: true
        case .beforeName, .afterName, .beforeValue, .quoted, .quotedPair, .afterValue: false
        }
    }

    /// Processes a byte other than CR and returns whether the grammar allows it here.
    mutating func take(_ byte: UInt8) -> Bool {
        guard let next = Self.state(after: state, byte) else { return false }
        state = next
        return true
    }

    private static func state(after state: State, _ byte: UInt8) -> State? {
        switch state {
        case .quoted:
            switch byte {
            case UInt8(ascii: "\""): return .quotedEnd
            case UInt8(ascii: "\\"): return .quotedPair
            default: return isText(byte) ? .quoted : nil
            }
        case .quotedPair: return isText(byte) ? .quoted : nil
        case .beforeValue where byte == UInt8(ascii: "\""): return .quoted
        case .size, .beforeName, .name, .afterName, .beforeValue, .value, .quotedEnd, .afterValue: break
        }
        switch byte {
        case 0x20, 0x09: return afterWhitespace(state)
        case UInt8(ascii: ";"):
            switch state {
            case .size, .name, .afterName, .value, .quotedEnd, .afterValue: return .beforeName
            case .beforeName, .beforeValue, .quoted, .quotedPair: return nil
            }
        case UInt8(ascii: "="):
            switch state {
            case .name, .afterName: return .beforeValue
            case .size, .beforeName, .beforeValue, .value, .quoted, .quotedPair, .quotedEnd, .afterValue: return nil
            }
        default: return ASCII.isTokenCharacter(byte) ? afterTokenByte(state) : nil
        }
    }

    private static func afterWhitespace(_ state: State) -> State {
        switch state {
        case .name: .afterName
        case .value, .quotedEnd: .afterValue
        case .size, .beforeName, .afterName, .beforeValue, .quoted, .quotedPair, .afterValue: state
        }
    }

    private static func afterTokenByte(_ state: State) -> State? {
        switch state {
        case .beforeName, .name: .name
        case .beforeValue, .value: .value
        case .size, .afterName, .quoted, .quotedPair, .quotedEnd, .afterValue: nil
        }
    }

    /// Whether a quoted string may contain a byte: `HTAB / SP / VCHAR / obs-text` (RFC 9110, section 5.6.4).
    private static func isText(_ byte: UInt8) -> Bool { byte == 0x09 || byte >= 0x20 && byte != 0x7F }
}
