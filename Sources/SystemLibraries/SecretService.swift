// SPDX-License-Identifier: Apache-2.0

import CSystemLibraries
import LibC
import Synchronization

/// The desktop's store of secrets (freedesktop.org, Secret Service API: GNOME Keyring, KWallet), through libsecret.
///
/// Every call blocks until the service responds. If the keyring is locked, the service first asks the user to unlock it. Never make
/// such a call on an event loop. Calls may come from any thread; a lock serializes them.
package enum SecretService {
    static let library = SystemLibrary.functions(of: ["libsecret-1.so.0"], clib_secret_load)

    private static let turn = Mutex(())

    /// A secret, and the attributes that identify it.
    ///
    /// The attributes are not secret.
    package struct Item: Sendable, Hashable {
        package var label: String
        package var attributes: [String: String]
        package var secret: String

        package init(label: String, attributes: [String: String], secret: String) {
            self.label = label
            self.attributes = attributes
            self.secret = secret
        }
    }

    package struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
        /// Whether the library, the session bus, or the service on it is missing.
        package var isAbsence: Bool
        package var text: String

        package var description: String { text }
    }

    /// Whether the library, a session bus and a secret service are available; starts the service if needed.
    package static var isAvailable: Bool {
        guard let library else { return false }
        return turn.withLock { _ in
            var failure = clib_secret_failure()
            return clib_secret_is_reachable(library.table, &failure) != 0
        }
    }

    /// Stores a secret in the default collection, replacing any secret with the same attributes.
    ///
    /// The schema is the name of the kind of item, such as "org.example.Password". The label is shown to users who browse the
    /// keyring.
    package static func store(
        _ secret: String, label: String, attributes: [String: String], schema: String
    ) throws(Failure) {
        // C strings end at the first NUL.
        guard !secret.utf8.contains(0) else { throw Failure(isAbsence: false, text: "a secret with a NUL cannot be stored") }
        try call(attributes) { functions, pairs, failure in
            clib_secret_store(functions, schema, pairs.baseAddress, Int32(pairs.count), label, secret, failure)
        }
    }

    /// Removes all items that have at least these attributes; returns false if there was no such item.
    @discardableResult
    package static func remove(_ attributes: [String: String], schema: String) throws(Failure) -> Bool {
        var removed: Int32 = 0
        try call(attributes) { functions, pairs, failure in
            clib_secret_remove(functions, schema, pairs.baseAddress, Int32(pairs.count), &removed, failure)
        }
        return removed != 0
    }

    /// Returns all items that have at least these attributes.
    package static func list(_ attributes: [String: String], schema: String) throws(Failure) -> [Item] {
        var items: [Item] = []
        try call(attributes) { functions, pairs, failure in
            withUnsafeMutablePointer(to: &items) { pointer in
                clib_secret_list(functions, schema, pairs.baseAddress, Int32(pairs.count), visitor, pointer, failure)
            }
        }
        return items
    }

    /// Appends an item to the array that the context points to.
    private static let visitor: clib_secret_visitor = { context, label, attributes, count, value in
        guard let items = context?.assumingMemoryBound(to: [Item].self), let label, let value else { return }
        var all: [String: String] = [:]
        for attribute in UnsafeBufferPointer(start: attributes, count: Int(count)) {
            guard let name = attribute.name, let value = attribute.value else { continue }
            all[String(cString: name)] = String(cString: value)
        }
        all[schemaAttribute] = nil
        items.pointee.append(Item(label: String(cString: label), attributes: all, secret: String(cString: value)))
    }

    /// The attribute in which libsecret stores the schema's name.
    private static let schemaAttribute = "xdg:schema"

    private static func call(
        _ attributes: [String: String],
        _ body: (OpaquePointer, UnsafeBufferPointer<clib_secret_attribute>, UnsafeMutablePointer<clib_secret_failure>) -> Int32
    ) throws(Failure) {
        guard let library else { throw Failure(isAbsence: true, text: "libsecret is not installed") }
        let pairs = attributes.filter { $0.key != schemaAttribute }.map { name, value in
            clib_secret_attribute(name: UnsafePointer(strdup(name)), value: UnsafePointer(strdup(value)))
        }
        defer {
            for pair in pairs {
                free(UnsafeMutablePointer(mutating: pair.name))
                free(UnsafeMutablePointer(mutating: pair.value))
            }
        }
        var failure = clib_secret_failure()
        let isDone = turn.withLock { _ in
            pairs.withUnsafeBufferPointer { body(library.table, $0, &failure) }
        }
        guard isDone == 0 else { return }
        let text = SystemLibrary.text(failure.text)
        throw Failure(isAbsence: failure.is_absent != 0, text: text)
    }
}

extension SecretService.Item: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Redacted: reveals none of the content.
    package var description: String { "an item of \(attributes.count) attributes" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
