// SPDX-License-Identifier: Apache-2.0

package import Synchronization

extension Mutex {
    /// Returns the only object with a name, and makes it at the first call.
    package func object<Object: Sendable>(named name: String, make: () -> Object) -> Object where Value == [String: Object] {
        withLock { objects in
            if let object = objects[name] { return object }
            let object = make()
            objects[name] = object
            return object
        }
    }
}
