//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// A rule's value that can be kept in a file: cookies, HSTS hosts.
protocol SharedContent: Sendable {
    associatedtype Change: Hashable, Sendable

    /// What a warning calls it.
    static var title: String { get }
    static var envelope: StoreEnvelope { get }

    init()
    mutating func apply(_ changes: [Change])

    /// What of it outlasts the process and has not expired. The same value always gives the same bytes.
    func encoded(now: Double) -> [UInt8]
    /// nil where the bytes are no such value; what could not have been written by us is left out.
    static func decoded(_ file: [UInt8], from start: Int) -> Self?

    /// What another process left on the disk, with what only this process knows: the `pending` changes and what never gets there.
    static func merged(disk: Self, memory: Self, pending: [Change]) -> Self
    /// The last change of each thing alone.
    static func condensed(_ changes: [Change]) -> [Change]
    /// Whether a change makes a difference here, and not in other processes alone.
    static func isVisible(_ change: Change) -> Bool
    /// Whether somebody who shows it would show something else.
    func isSame(as other: Self) -> Bool
}

extension SharedContent {
    static func isVisible(_ change: Change) -> Bool { true }
}
