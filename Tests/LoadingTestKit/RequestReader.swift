// SPDX-License-Identifier: Apache-2.0

/// Parses requests from the bytes of a connection (RFC 9112), as leniently as possible.
struct RequestReader {
    enum Event {
        case head(RecordedRequest)
        case body(total: Int)
        case end(RecordedRequest)
        case unreadable(String)
    }

    private enum Stage {
        case head, sized(Int), chunkSize, chunk(Int), chunkEnd, trailers, broken
    }

    private var buffer: [UInt8] = []
    private var position = 0
    private var stage = Stage.head
    /// The part of the current request that was read; nil between requests.
    private(set) var current: RecordedRequest?

    init() {}

    /// Whether there are bytes of an incomplete request.
    var isInsideRequest: Bool { current != nil || position < buffer.count }

    mutating func feed(_ bytes: some Collection<UInt8>) -> [Event] {
        if position > 0 {
            buffer.removeSubrange(..<position)
            position = 0
        }
        buffer.append(contentsOf: bytes)
        var events: [Event] = []
        while let event = next() { events.append(event) }
        return events
    }

    private mutating func next() -> Event? {
        while true {
            switch stage {
            case .broken: return nil
            case .head:
                while position < buffer.count, buffer[position] == 0x0D || buffer[position] == 0x0A { position += 1 }
                // A TLS record (RFC 8446, section 5.1) instead of a request: the script handles it.
                if position == 0, buffer.starts(with: [0x16, 0x03]) {
                    stage = .broken
                    return nil
                }
                guard let end = endOfHead() else { return nil }
                return readHead(until: end)
            case .sized(0): return finish()
            case .sized(let left):
                guard position < buffer.count else { return nil }
                let count = min(left, buffer.count - position)
                stage = .sized(left - count)
                return take(count)
            case .chunkSize:
                guard let line = line() else { return nil }
                let digits = line.prefix { $0 != ";" }.filter { $0 != " " }
                guard let size = Int(digits, radix: 16), size >= 0 else {
                    stage = .broken
                    return .unreadable("chunk size '\(line)'")
                }
                stage = size == 0 ? .trailers : .chunk(size)
                if size > 0 { current?.chunks.append(size) }
            case .chunk(0): stage = .chunkEnd
            case .chunk(let left):
                guard position < buffer.count else { return nil }
                let count = min(left, buffer.count - position)
                stage = .chunk(left - count)
                return take(count)
            case .chunkEnd:
                guard line() != nil else { return nil }
                stage = .chunkSize
            case .trailers:
                guard let line = line() else { return nil }
                if line.isEmpty { return finish() }
                if let field = Self.field(line) { current?.trailers.append(field) }
            }
        }
    }

    private mutating func readHead(until end: Int) -> Event {
        var request = RecordedRequest()
        request.rawHead = Array(buffer[position..<end])
        position = end
        var lines = Self.lines(request.rawHead)
        let parts = lines.isEmpty ? [] : lines.removeFirst().split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count >= 3 else {
            stage = .broken
            return .unreadable("request line of '\(request.headText)'")
        }
        request.method = String(parts[0])
        request.target = parts[1..<(parts.count - 1)].joined(separator: " ")
        request.version = String(parts[parts.count - 1])
        request.headers = lines.compactMap(Self.field)
        if request.isChunked {
            stage = .chunkSize
        } else {
            stage = .sized(request.header("Content-Length").flatMap { Int($0) } ?? 0)
        }
        current = request
        return .head(request)
    }

    private mutating func take(_ count: Int) -> Event {
        let bytes = buffer[position..<(position + count)]
        position += count
        current?.takeBody(bytes)
        return .body(total: current?.bodyLength ?? 0)
    }

    private mutating func finish() -> Event {
        var request = current ?? RecordedRequest()
        request.isComplete = true
        current = nil
        stage = .head
        return .end(request)
    }

    /// The position after the empty line that ends the head, or nil.
    private func endOfHead() -> Int? {
        var index = position
        while index < buffer.count {
            if buffer[index] == 0x0A {
                if index + 1 < buffer.count, buffer[index + 1] == 0x0A { return index + 2 }
                if index + 2 < buffer.count, buffer[index + 1] == 0x0D, buffer[index + 2] == 0x0A { return index + 3 }
            }
            index += 1
        }
        return nil
    }

    private mutating func line() -> String? {
        guard let end = buffer[position...].firstIndex(of: 0x0A) else { return nil }
        var bytes = buffer[position..<end]
        if bytes.last == 0x0D { bytes.removeLast() }
        position = end + 1
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func lines(_ bytes: [UInt8]) -> [String] {
        bytes.split(separator: 0x0A).map { line in
            String(decoding: line.last == 0x0D ? line.dropLast() : line, as: UTF8.self)
        }.filter { !$0.isEmpty }
    }

    private static func field(_ line: String) -> (name: String, value: String)? {
        guard let colon = line.firstIndex(of: ":") else { return nil }
        let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        return (String(line[..<colon]), String(value.reversed().drop { $0 == " " || $0 == "\t" }.reversed()))
    }
}
