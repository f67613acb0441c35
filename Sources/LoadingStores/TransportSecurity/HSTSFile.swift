// SPDX-License-Identifier: Apache-2.0

package import HTTPRules

/// Encodes and decodes the HSTS hosts of a file, one record per host.
package enum HSTSFile {
    static let envelope = StoreEnvelope(kind: "hsts", version: 1)
    private static let timeLimit = 1e12

    /// Sorted by host, so that equal lists have equal encodings.
    package static func encode(_ entries: [String: HSTSList.Entry], now: Double) -> [UInt8] {
        var writer = RecordWriter()
        for (host, entry) in entries.sorted(by: { $0.key < $1.key }) where entry.expires > now && isSound(host, entry) {
            writer.write(host)
            writer.write(UInt8(entry.includesSubdomains ? 1 : 0))
            writer.write(HSTSList.rounded(entry.expires, now: now))
            writer.write(entry.created)
        }
        return writer.bytes
    }

    package static func decode(_ file: [UInt8], from start: Int) -> [String: HSTSList.Entry]? {
        file.withUnsafeBytes { bytes in
            var reader = RecordReader(bytes, from: start)
            var entries: [String: HSTSList.Entry] = [:]
            while !reader.isAtEnd {
                guard let host = reader.text(), let flag = reader.number(UInt8.self), flag < 2, let expires = reader.double(),
                    let created = reader.double()
                else { return nil }
                let entry = HSTSList.Entry(expires: expires, includesSubdomains: flag == 1, created: created)
                if isSound(host, entry) { entries[host] = entry }
            }
            return entries
        }
    }

    private static func isSound(_ host: String, _ entry: HSTSList.Entry) -> Bool {
        guard abs(entry.expires) < timeLimit, abs(entry.created) < timeLimit, !host.isEmpty, host.utf8.count < 256 else {
            return false
        }
        return host.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") && !(0x41...0x5A).contains($0) }
    }
}
