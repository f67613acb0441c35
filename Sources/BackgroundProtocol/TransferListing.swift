//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import LoadingModel

/// Writes and reads lists of transfers, of which there may be tens of thousands while somebody waits for them.
///
/// It is the JSON of a ``WireDaemonMessage`` of the kind `transfers`, without a coder's container for each value. Whatever it is not
/// certain of it leaves to the coders, which judge it.
enum TransferListing {
    static func encode(_ reports: [TransferReport], request: Int, isLast: Bool) -> [UInt8]? {
        var writer = Writer(reports.count * 256 + 64)
        writer.open("{")
        if isLast { writer.field("isLast", true) }
        writer.field("kind", "transfers")
        writer.field("number", request)
        if !reports.isEmpty {
            writer.name("transfers")
            writer.open("[")
            for report in reports {
                guard report.created.isFinite else { return nil }
                writer.value(report)
            }
            writer.close("]")
        }
        writer.close("}")
        return writer.bytes
    }

    /// - Parameter bytes: What ``JSONShape`` has found to be an object.
    /// - Returns: Nil where it is something else, or has what this does not know.
    static func decode(_ bytes: [UInt8]) -> DaemonMessage? {
        bytes.withUnsafeBufferPointer { bytes in
            var reader = Reader(bytes)
            return reader.message()
        }
    }
}

extension TransferListing {
    fileprivate struct Writer {
        private(set) var bytes: [UInt8] = []
        private var isFirst = true

        init(_ capacity: Int) { bytes.reserveCapacity(capacity) }

        mutating func open(_ bracket: Unicode.Scalar) {
            bytes.append(UInt8(ascii: bracket))
            isFirst = true
        }

        mutating func close(_ bracket: Unicode.Scalar) {
            bytes.append(UInt8(ascii: bracket))
            isFirst = false
        }

        mutating func name(_ name: StaticString) {
            next()
            bytes.append(UInt8(ascii: "\""))
            bytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
            bytes.append(contentsOf: [UInt8(ascii: "\""), UInt8(ascii: ":")])
        }

        private mutating func next() {
            if !isFirst { bytes.append(UInt8(ascii: ",")) }
            isFirst = false
        }

        mutating func field(_ name: StaticString, _ value: some CustomStringConvertible & Sendable) {
            self.name(name)
            bytes.append(contentsOf: value.description.utf8)
        }

        mutating func field(_ name: StaticString, _ text: String) {
            self.name(name)
            bytes.append(UInt8(ascii: "\""))
            if text.utf8.allSatisfy({ $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }) {
                bytes.append(contentsOf: text.utf8)
            } else {
                for byte in text.utf8 { escape(byte) }
            }
            bytes.append(UInt8(ascii: "\""))
        }

        private mutating func escape(_ byte: UInt8) {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(contentsOf: [UInt8(ascii: "\\"), byte])
            case 0x08: bytes.append(contentsOf: "\\b".utf8)
            case 0x09: bytes.append(contentsOf: "\\t".utf8)
            case 0x0A: bytes.append(contentsOf: "\\n".utf8)
            case 0x0C: bytes.append(contentsOf: "\\f".utf8)
            case 0x0D: bytes.append(contentsOf: "\\r".utf8)
            case ..<0x20:
                let digits = String(byte, radix: 16)
                bytes.append(contentsOf: "\\u00\(digits.utf8.count < 2 ? "0" : "")\(digits)".utf8)
            default: bytes.append(byte)
            }
        }

        mutating func value(_ report: TransferReport) {
            next()
            open("{")
            if report.counts != TransferCounts() {
                name("counts")
                open("{")
                let counts = report.counts
                if counts.expectedToReceive != -1 { field("expectedToReceive", counts.expectedToReceive) }
                if counts.expectedToSend != -1 { field("expectedToSend", counts.expectedToSend) }
                if counts.received != 0 { field("received", counts.received) }
                if counts.sent != 0 { field("sent", counts.sent) }
                close("}")
            }
            let created = report.created.description
            name("created")
            bytes.append(contentsOf: created.hasSuffix(".0") ? created.utf8.dropLast(2) : created.utf8[...])
            if let description = report.description { field("description", description) }
            if report.isUpload { field("isUpload", true) }
            field("number", report.number)
            if !report.program.isEmpty { field("program", report.program) }
            if !report.reason.isEmpty { field("reason", report.reason) }
            if !report.session.isEmpty { field("session", report.session) }
            field("state", report.state.rawValue)
            field("task", report.task)
            if !report.url.isEmpty { field("url", report.url) }
            close("}")
        }
    }
}

extension TransferListing {
    /// Goes through the text once; nil ends it.
    fileprivate struct Reader {
        private let bytes: UnsafeBufferPointer<UInt8>
        private var at = 0

        init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

        mutating func message() -> DaemonMessage? {
            var (isList, isLast) = (false, false)
            var number: Int?
            var reports: [TransferReport] = []
            let isRead = object { reader, name in
                switch name {
                case "kind":
                    guard reader.text() == "transfers" else { return false }
                    isList = true
                case "isLast":
                    guard let value = reader.truth() else { return false }
                    isLast = value
                case "number":
                    guard let value = reader.number().flatMap({ Int(exactly: $0) }) else { return false }
                    number = value
                case "transfers": return reader.list { reader in reader.report().map { reports.append($0) } != nil }
                default: return false
                }
                return true
            }
            skipSpace()
            guard isRead, isList, at == bytes.count, let number else { return nil }
            return .transfers(reports, request: number, isLast: isLast)
        }

        private mutating func report() -> TransferReport? {
            var number: Int64?
            var task: Int64?
            var created: Double?
            var report = TransferReport(
                number: 0, program: "", session: "", task: 0, url: "", isUpload: false, state: .waiting, reason: "",
                counts: TransferCounts(), created: 0)
            let isRead = object { reader, name in
                switch name {
                case "number": number = reader.number()
                case "task": task = reader.number()
                case "created": created = reader.real()
                case "isUpload": return reader.truth().map { report.isUpload = $0 } != nil
                case "counts": return reader.counts(&report.counts)
                case "program": return reader.text().map { report.program = $0 } != nil
                case "session": return reader.text().map { report.session = $0 } != nil
                case "url": return reader.text().map { report.url = $0 } != nil
                case "reason": return reader.text().map { report.reason = $0 } != nil
                case "description": return reader.text().map { report.description = $0 } != nil
                case "state": return reader.text().map { report.state = TransferReport.State(rawValue: $0) ?? .waiting } != nil
                default: return false
                }
                return true
            }
            guard isRead, let number, let created, let task = task.flatMap({ Int(exactly: $0) }) else { return nil }
            report.number = number
            report.task = task
            report.created = created
            return report
        }

        private mutating func counts(_ counts: inout TransferCounts) -> Bool {
            var read = counts
            defer { counts = read }
            return object { reader, name in
                guard let value = reader.number() else { return false }
                switch name {
                case "sent": read.sent = max(0, value)
                case "received": read.received = max(0, value)
                case "expectedToSend": read.expectedToSend = max(-1, value)
                case "expectedToReceive": read.expectedToReceive = max(-1, value)
                default: return false
                }
                return true
            }
        }

        // MARK: JSON

        private var peek: UInt8? { at < bytes.count ? bytes[at] : nil }

        private mutating func skipSpace() {
            while let byte = peek, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { at += 1 }
        }

        private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
            skipSpace()
            guard peek == UInt8(ascii: scalar) else { return false }
            at += 1
            return true
        }

        private mutating func object(_ field: (inout Reader, String) -> Bool) -> Bool {
            guard take("{") else { return false }
            if take("}") { return true }
            repeat {
                guard let name = text(), take(":"), field(&self, name) else { return false }
            } while take(",")
            return take("}")
        }

        private mutating func list(_ entry: (inout Reader) -> Bool) -> Bool {
            guard take("[") else { return false }
            if take("]") { return true }
            repeat {
                guard entry(&self) else { return false }
            } while take(",")
            return take("]")
        }

        private mutating func truth() -> Bool? {
            skipSpace()
            for (word, value) in [("true", true), ("false", false)] where bytes[at...].starts(with: word.utf8) {
                at += word.utf8.count
                return value
            }
            return nil
        }

        /// The text of a number.
        private mutating func digits() -> Slice<UnsafeBufferPointer<UInt8>> {
            skipSpace()
            let start = at
            while let byte = peek, byte != UInt8(ascii: ","), byte != UInt8(ascii: "}"), byte > 0x20 { at += 1 }
            return bytes[start..<at]
        }

        private mutating func number() -> Int64? { Int64(String(decoding: digits(), as: UTF8.self)) }

        private mutating func real() -> Double? {
            Double(String(decoding: digits(), as: UTF8.self)).flatMap { $0.isFinite ? $0 : nil }
        }

        /// Nil for one with a character's number in it.
        private mutating func text() -> String? {
            guard take("\"") else { return nil }
            let start = at
            while let byte = peek, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") { at += 1 }
            guard peek == UInt8(ascii: "\\") else {
                defer { at += 1 }
                return peek == nil ? nil : String(decoding: bytes[start..<at], as: UTF8.self)
            }
            var plain = Array(bytes[start..<at])
            while let byte = peek {
                at += 1
                switch byte {
                case UInt8(ascii: "\""): return String(decoding: plain, as: UTF8.self)
                case UInt8(ascii: "\\"):
                    guard let escaped = peek, let meant = Self.escaped(escaped) else { return nil }
                    at += 1
                    plain.append(meant)
                default: plain.append(byte)
                }
            }
            return nil
        }

        private static func escaped(_ byte: UInt8) -> UInt8? {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): byte
            case UInt8(ascii: "n"): 0x0A
            case UInt8(ascii: "r"): 0x0D
            case UInt8(ascii: "t"): 0x09
            default: nil
            }
        }
    }
}
