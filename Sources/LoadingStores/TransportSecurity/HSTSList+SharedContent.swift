// SPDX-License-Identifier: Apache-2.0

import HTTPRules

/// The known HSTS hosts as a value that processes share.
extension HSTSList: SharedContent {
    static var title: String { "HSTS hosts" }
    static var envelope: StoreEnvelope { HSTSFile.envelope }

    func encoded(now: Double) -> [UInt8] {
        HSTSFile.encode(entries, now: now)
    }

    static func decoded(_ file: [UInt8], from start: Int) -> HSTSList? {
        HSTSFile.decode(file, from: start).map { HSTSList($0) }
    }

    static func merged(disk: HSTSList, memory: HSTSList, pending: [Change]) -> HSTSList {
        var merged = disk
        merged.apply(pending)
        return merged
    }

    static func key(of change: Change) -> String {
        switch change {
        case .set(let host, _), .removed(let host): host
        }
    }

    func isSame(as other: HSTSList) -> Bool {
        entries == other.entries
    }
}
