// SPDX-License-Identifier: Apache-2.0

import LoadingStores
import Testing

@Suite struct ContentChecksumTests {
    @Test func `the checksum is XXH64`() {
        let rows: [(String, UInt64)] = [
            ("", 0xEF46_DB37_51D8_E999),
            ("a", 0xD24E_C4F1_A98C_6E5B),
            ("abc", 0x44BC_2CF5_AD77_0999),
            ("Nobody inspects the spammish repetition", 0xFBCE_A83C_8A37_8BF1),
        ]
        for (text, expected) in rows {
            var text = text
            #expect(text.withUTF8 { ContentChecksum.of(UnsafeRawBufferPointer($0)) } == expected)
        }
    }

    @Test func `pieces of any length have the checksum of the whole`() {
        let bytes = Sample.body(1000)
        let whole = bytes.withUnsafeBytes { ContentChecksum.of($0) }
        for size in [1, 3, 7, 8, 31, 32, 33, 64, 100, 999] {
            var checksum = ContentChecksum()
            var position = 0
            while position < bytes.count {
                let end = min(position + size, bytes.count)
                bytes.withUnsafeBytes { checksum.update(UnsafeRawBufferPointer(rebasing: $0[position..<end])) }
                position = end
            }
            #expect(checksum.value == whole, "pieces of \(size)")
        }
    }
}
