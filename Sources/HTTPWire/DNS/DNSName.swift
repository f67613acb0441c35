// SPDX-License-Identifier: Apache-2.0

/// A domain name; the case of its letters does not matter (RFC 1035, section 2.3.3).
package struct DNSName: Sendable, Hashable {
    /// The maximum length on the wire, without the length of the root label.
    private static let maximumLength = 254
    /// The maximum number of compression pointers in one name: as many as a name can have labels.
    private static let maximumPointerCount = 127

    /// The labels in lower case, each after its length, without the root label.
    private var labels: [UInt8] = []

    package static let root = DNSName()

    private init() {}

    /// Creates a name from its text; nil if the text is not a host name, which may contain underscores.
    ///
    /// A dot at the end is ignored.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        for label in (bytes.last == UInt8(ascii: ".") ? bytes.dropLast() : bytes[...]).split(
            separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        {
            guard !label.isEmpty, label.allSatisfy(Self.isOfHost), append(label) else { return nil }
        }
    }

    /// Reads a name from a message, or returns nil if there is no valid name.
    ///
    /// A compression pointer (section 4.1.4) leads to "a prior occurrence of the same name", so that every name ends.
    init?(_ reader: inout DNSReader, isCompressible: Bool = true) {
        var source = reader
        var pointerCount = 0
        while true {
            let start = source.position
            guard let length = source.byte() else { return nil }
            switch length {
            case 0:
                if pointerCount == 0 { reader = source }
                return
            case 1...63:
                guard let label = source.bytes(Int(length)), append(label) else { return nil }
            case 0xC0...:
                guard isCompressible, pointerCount < Self.maximumPointerCount, let low = source.byte() else { return nil }
                if pointerCount == 0 { reader = source }
                pointerCount += 1
                let place = Int(length & 0x3F) << 8 | Int(low)
                guard place < start, source.move(to: place) else { return nil }
            default: return nil
            }
        }
    }

    private mutating func append(_ label: ArraySlice<UInt8>) -> Bool {
        guard label.count <= 63, labels.count + 1 + label.count <= Self.maximumLength else { return false }
        labels.append(UInt8(label.count))
        labels.append(contentsOf: label.lazy.map(ASCII.lowercased))
        return true
    }

    /// Returns the name of a service at a port: `_8443._https.example.com` (RFC 9460, section 9.1).
    package func service(_ service: String, port: Int) -> DNSName? {
        guard var name = DNSName("_\(port)._\(service)"), name.labels.count + labels.count <= Self.maximumLength else {
            return nil
        }
        name.labels += labels
        return name
    }

    /// The name as a host, without a dot at its end; nil for the root and for names that hosts cannot have.
    package var host: String? {
        guard !labels.isEmpty else { return nil }
        var text: [UInt8] = []
        var rest = labels[...]
        while let length = rest.popFirst() {
            let label = rest.prefix(Int(length))
            guard label.allSatisfy(Self.isOfHost) else { return nil }
            if !text.isEmpty { text.append(UInt8(ascii: ".")) }
            text.append(contentsOf: label)
            rest = rest.dropFirst(Int(length))
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func isOfHost(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

/// Reads the parts of a message of DNS, and never beyond its end.
struct DNSReader {
    private let message: ArraySlice<UInt8>
    private(set) var position: Int

    init(_ message: ArraySlice<UInt8>) {
        self.message = message
        position = message.startIndex
    }

    var isAtEnd: Bool { position == message.endIndex }

    mutating func byte() -> UInt8? {
        guard position < message.endIndex else { return nil }
        defer { position += 1 }
        return message[position]
    }

    mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
        guard count <= message.endIndex - position else { return nil }
        defer { position += count }
        return message[position..<position + count]
    }

    /// Reads a number of two bytes.
    mutating func number() -> Int? { bytes(2).map { $0.reduce(0) { $0 << 8 | Int($1) } } }

    /// Reads a number of four bytes.
    mutating func longNumber() -> Int? { bytes(4).map { $0.reduce(0) { $0 << 8 | Int($1) } } }

    /// Continues at another place of the message; returns false if there is no such place.
    mutating func move(to place: Int) -> Bool {
        guard message.indices.contains(place) else { return false }
        position = place
        return true
    }
}
