// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// The supported directives (RFC 9111, section 5.2; RFC 5861; RFC 8246).
enum CacheDirective {
    case immutable, maxAge, maxStale, minFresh, mustRevalidate, mustUnderstand, noCache, noStore, noTransform, onlyIfCached
    case isPrivate, isPublic, proxyRevalidate, sharedMaxAge, staleIfError, staleWhileRevalidate

    /// Looks up the name in a range of bytes, ignoring case.
    ///
    /// Nil for an unknown name.
    init?(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) {
        func isSpelled(_ word: StaticString) -> Bool { ASCII.matches(bytes, range.lowerBound, word) }
        switch range.count {
        case 6 where isSpelled("public"): self = .isPublic
        case 7 where isSpelled("max-age"): self = .maxAge
        case 7 where isSpelled("private"): self = .isPrivate
        case 8 where isSpelled("no-cache"): self = .noCache
        case 8 where isSpelled("no-store"): self = .noStore
        case 8 where isSpelled("s-maxage"): self = .sharedMaxAge
        case 9 where isSpelled("immutable"): self = .immutable
        case 9 where isSpelled("max-stale"): self = .maxStale
        case 9 where isSpelled("min-fresh"): self = .minFresh
        case 12 where isSpelled("no-transform"): self = .noTransform
        case 14 where isSpelled("only-if-cached"): self = .onlyIfCached
        case 14 where isSpelled("stale-if-error"): self = .staleIfError
        case 15 where isSpelled("must-revalidate"): self = .mustRevalidate
        case 15 where isSpelled("must-understand"): self = .mustUnderstand
        case 16 where isSpelled("proxy-revalidate"): self = .proxyRevalidate
        case 22 where isSpelled("stale-while-revalidate"): self = .staleWhileRevalidate
        default: return nil
        }
    }
}

/// Parses the directives of one `Cache-Control` line (RFC 9111, section 5.2).
///
/// A comma in a quoted string is not a separator, and quoted text is never a directive.
struct CacheDirectiveReader {
    enum Argument {
        case none
        /// The range of a token in ``bytes``.
        case token(Range<Int>)
        /// A quoted string without its quotation marks.
        case quoted([UInt8])
        /// The text after the name is not a valid argument.
        case malformed
    }

    let bytes: [UInt8]
    var position: Int
    let end: Int
    /// Whether a quoted string had no end.
    ///
    /// If so, the commas after its opening quotation mark are separators.
    private(set) var isUnterminated = false

    init(bytes: [UInt8], position: Int, end: Int) {
        self.bytes = bytes
        self.position = position
        self.end = end
    }

    /// Returns the next directive and its argument, or nil at the end of the line.
    ///
    /// The directive is nil if its name is unknown.
    mutating func next() -> (directive: CacheDirective?, argument: Argument)? {
        while position < end {
            skipBlanks()
            let start = position
            while position < end, ASCII.isTokenCharacter(bytes[position]) { position += 1 }
            guard position > start else {
                if position < end, bytes[position] == UInt8(ascii: ",") { position += 1 } else { skipToComma() }
                continue
            }
            let directive = bytes.withUnsafeBytes { CacheDirective($0, start..<position) }
            return (directive, readArgument())
        }
        return nil
    }

    private mutating func readArgument() -> Argument {
        let isAssigned = position < end && bytes[position] == UInt8(ascii: "=")
        guard isAssigned else { return endsHere() ? .none : malformed() }
        position += 1
        guard position < end, bytes[position] == UInt8(ascii: "\"") else {
            let start = position
            while position < end, ASCII.isTokenCharacter(bytes[position]) { position += 1 }
            let token = start..<position
            return !token.isEmpty && endsHere() ? .token(token) : malformed()
        }
        guard let text = quotedString() else {
            isUnterminated = true
            position += 1
            return malformed()
        }
        return endsHere() ? .quoted(text) : malformed()
    }

    /// Reads the quoted string that starts here, up to the next unescaped quotation mark (RFC 9110, section 5.6.4).
    ///
    /// Returns nil without consuming anything if there is no such mark.
    private mutating func quotedString() -> [UInt8]? {
        var text: [UInt8] = []
        var index = position + 1
        while index < end {
            switch bytes[index] {
            case UInt8(ascii: "\""):
                position = index + 1
                return text
            case UInt8(ascii: "\\"):
                index += 1
                if index < end { text.append(bytes[index]) }
            default: text.append(bytes[index])
            }
            index += 1
        }
        return nil
    }

    /// Whether there is only whitespace before the next comma.
    ///
    /// If so, consumes the comma.
    private mutating func endsHere() -> Bool {
        skipBlanks()
        guard position < end else { return true }
        guard bytes[position] == UInt8(ascii: ",") else { return false }
        position += 1
        return true
    }

    private mutating func malformed() -> Argument {
        skipToComma()
        return .malformed
    }

    /// Skips past the next comma that is not in a quoted string.
    private mutating func skipToComma() {
        while position < end {
            switch bytes[position] {
            case UInt8(ascii: ","):
                position += 1
                return
            case UInt8(ascii: "\"") where !isUnterminated:
                if quotedString() == nil {
                    isUnterminated = true
                    position += 1
                }
            default: position += 1
            }
        }
    }

    private mutating func skipBlanks() {
        while position < end, ASCII.isWhitespace(bytes[position]) { position += 1 }
    }
}
