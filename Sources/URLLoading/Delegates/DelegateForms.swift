// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Caches, for the whole process, the form in which each class implements each delegate method.
package enum DelegateForms {
    package enum Form: Sendable, Hashable {
        /// A method without a result, or with a completion handler.
        case completion
        case async
        /// Not implemented, except for the default implementation.
        case absent
    }

    private struct Key: Hashable {
        var type: ObjectIdentifier
        var method: DelegateMethod
    }

    private static let forms = Mutex<[Key: Form]>([:])

    /// Returns the form for a class, or nil if the method has never been called.
    package static func form(of method: DelegateMethod, in type: AnyClass) -> Form? {
        forms.withLock { $0[Key(type: ObjectIdentifier(type), method: method)] }
    }

    package static func record(_ form: Form, of method: DelegateMethod, in type: AnyClass) {
        forms.withLock { $0[Key(type: ObjectIdentifier(type), method: method)] = form }
    }
}
