// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The loaders that are registered for the shared session.
package enum URLProtocolRegistry {
    private static let registered = Mutex<[URLProtocol.Type]>([])

    /// The registered classes in the order in which they are asked: the last registered first.
    package static var classes: [URLProtocol.Type] { registered.withLock { $0.reversed() } }

    static func register(_ type: AnyClass) -> Bool {
        guard let type = type as? URLProtocol.Type else { return false }
        registered.withLock { classes in
            classes.removeAll { $0 == type }
            classes.append(type)
        }
        return true
    }

    static func unregister(_ type: AnyClass) {
        registered.withLock { classes in classes.removeAll { $0 == type } }
    }
}
