//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Synchronization

/// Remembers in which form each class implements each delegate method, for the whole process.
package enum DelegateForms {
    package enum Form: Sendable, Hashable {
        /// Told without an answer, or asked with a completion handler.
        case completion
        case async
        /// Not implemented: only the default is there.
        case absent
    }

    private struct Key: Hashable {
        var type: ObjectIdentifier
        var method: DelegateMethod
    }

    private static let learned = Mutex<[Key: Form]>([:])

    /// What is known of a class, or nil where the method was never called.
    package static func form(of method: DelegateMethod, in type: AnyClass) -> Form? {
        learned.withLock { $0[Key(type: ObjectIdentifier(type), method: method)] }
    }

    package static func learn(_ form: Form, of method: DelegateMethod, in type: AnyClass) {
        learned.withLock { $0[Key(type: ObjectIdentifier(type), method: method)] = form }
    }
}
