// SPDX-License-Identifier: Apache-2.0

internal import LoadingModel
internal import Synchronization

/// Tells the delegates of tasks apart that evaluate servers themselves: a connection that only one delegate accepted is not used
/// for the tasks of another, and each is asked about the connections that the roots vouch for.
enum DelegateHolders {
    private struct Entry: Sendable {
        weak var delegate: (any URLSessionDelegate)?
        let holder = ConnectionHolder()
    }

    private static let entries = Mutex<(known: [ObjectIdentifier: Entry], limit: Int)>(([:], 64))

    /// Returns the same holder for all tasks of one delegate, and different holders for different delegates.
    static func holder(for delegate: any URLSessionDelegate) -> ConnectionHolder {
        entries.withLock { entries in
            let id = ObjectIdentifier(delegate)
            if let entry = entries.known[id], entry.delegate === delegate { return entry.holder }
            if entries.known.count >= entries.limit {
                entries.known = entries.known.filter { $0.value.delegate != nil }
                entries.limit = max(64, 2 * entries.known.count)
            }
            let entry = Entry(delegate: delegate)
            entries.known[id] = entry
            return entry.holder
        }
    }
}
