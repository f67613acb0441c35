// SPDX-License-Identifier: Apache-2.0

/// Writes messages of DNS, for tests.
enum DNSBytes {
    /// A record of an answer.
    struct Record {
        var owner: [UInt8] = [0xC0, 12]
        var type = 65
        var kind = 1
        var seconds = 300
        var data: [UInt8]

        static func alias(_ name: String, of owner: [UInt8] = [0xC0, 12], seconds: Int = 300) -> Record {
            Record(owner: owner, type: 5, seconds: seconds, data: DNSBytes.name(name))
        }

        static func authority(seconds: Int, minimum: Int) -> Record {
            let numbers = [1, 2, 3, 4, minimum].flatMap { DNSBytes.number($0 >> 16) + DNSBytes.number($0 & 0xFFFF) }
            return Record(type: 6, seconds: seconds, data: [0xC0, 12] + DNSBytes.name("admin.test") + numbers)
        }

        var bytes: [UInt8] {
            owner + number(type) + number(kind) + number(seconds >> 16) + number(seconds & 0xFFFF) + number(data.count) + data
        }
    }

    static func number(_ number: Int) -> [UInt8] { [UInt8(number >> 8 & 0xFF), UInt8(number & 0xFF)] }

    static func name(_ text: String) -> [UInt8] {
        text.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0]
    }

    static func message(
        _ asked: String, _ answers: [Record], authorities: [Record] = [], flags: Int = 0x8180, type: Int = 65
    ) -> [UInt8] {
        let counts = [1, answers.count, authorities.count, 0].flatMap(number)
        let records = (answers + authorities).flatMap(\.bytes)
        return number(0x1234) + number(flags) + counts + name(asked) + number(type) + number(1) + records
    }

    /// The data of an HTTPS record.
    static func binding(_ priority: Int, _ target: String, _ parameters: [(key: Int, value: [UInt8])] = []) -> [UInt8] {
        number(priority) + name(target) + parameters.flatMap { number($0.key) + number($0.value.count) + $0.value }
    }

    static func protocols(_ names: String...) -> [UInt8] { names.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } }

    static func bytes(_ hexadecimal: String) -> [UInt8] {
        var digits = hexadecimal.utf8.filter { $0 > UInt8(ascii: " ") }[...]
        var bytes: [UInt8] = []
        while digits.count > 1 {
            bytes.append(UInt8(String(decoding: digits.prefix(2), as: UTF8.self), radix: 16) ?? 0)
            digits = digits.dropFirst(2)
        }
        return bytes
    }
}
