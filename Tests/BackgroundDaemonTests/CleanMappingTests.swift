// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
import Foundation
import Testing

/// Which memory an idle daemon returns to the system.
@Suite struct CleanMappingTests {
    /// The start addresses of the mappings that are clean according to a text in the format of `/proc/self/smaps`.
    private func clean(_ map: String) throws -> [UInt] {
        let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try Data(map.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        return clean(at: file.path)
    }

    private func clean(at path: String) -> [UInt] {
        var starts: [UInt] = []
        withUnsafeMutablePointer(to: &starts) { starts in
            cls_clean_mappings(
                path, { list, start, _ in list?.assumingMemoryBound(to: [UInt].self).pointee.append(start) }, starts)
        }
        return starts
    }

    private func mapping(_ start: String, _ rights: String = "r--p", inode: Int = 7, counts: [String: Int] = [:]) -> String {
        let names = ["Size", "Rss", "Shared_Dirty", "Private_Clean", "Private_Dirty", "Anonymous", "Swap", "SwapPss", "Locked"]
        let lines = names.map { "\($0): \(String(repeating: " ", count: 8)) \(counts[$0] ?? ($0 == "Size" ? 4 : 0)) kB\n" }
        return "\(start)000-\(start)fff \(rights) 00000000 08:01 \(inode) /lib/library.so\n" + lines.joined()
    }

    @Test(arguments: ["Private_Dirty", "Shared_Dirty", "Anonymous", "Swap"])
    func `a mapping with modified pages in memory or swap is not released`(count: String) throws {
        let map = mapping("1") + mapping("2", counts: [count: 4]) + mapping("3", counts: ["Rss": 4, "Private_Clean": 4])
        #expect(try clean(map) == [0x1000, 0x3000])
        #expect(try clean(mapping("1", counts: [count: 4])) == [])
    }

    @Test func `writable and anonymous mappings are not released`() throws {
        #expect(try clean(mapping("1", "rw-p") + mapping("2", inode: 0) + mapping("3", "r-xp")) == [0x3000])
        #expect(try clean("") == [])
    }

    @Test func `some mappings of a running program are clean`() {
        #expect(!clean(at: "/proc/self/smaps").isEmpty)
    }
}
