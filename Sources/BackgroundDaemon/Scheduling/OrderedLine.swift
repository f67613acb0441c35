//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Transfers in the order of a number, of equal ones the older first.
///
/// A binary heap whose entries are taken out lazily: what was removed is left where it is until it comes to the front, or half of all is.
struct OrderedLine: Sendable {
    private struct Slot: Sendable {
        var at: Double
        var id: Int64
    }

    private var slots: [Slot] = []
    /// Where each one stands that is here.
    private var places: [Int64: Double] = [:]

    var isEmpty: Bool { places.isEmpty }
    var count: Int { places.count }

    /// The one in front.
    var first: (id: Int64, at: Double)? { slots.first.map { ($0.id, $0.at) } }

    mutating func insert(_ id: Int64, at place: Double) {
        if let known = places[id] {
            if known == place { return }
            remove(id, at: known)
        }
        places[id] = place
        slots.append(Slot(at: place, id: id))
        rise(slots.count - 1)
    }

    mutating func remove(_ id: Int64, at place: Double) {
        guard places[id] == place else { return }
        places[id] = nil
        if slots.count > 64, slots.count > 2 * places.count { rebuild() } else { dropStale() }
    }

    /// Has the one in front be one that is here.
    private mutating func dropStale() {
        while let front = slots.first, places[front.id] != front.at {
            let last = slots.removeLast()
            guard !slots.isEmpty else { return }
            slots[0] = last
            sink(0)
        }
    }

    private mutating func rebuild() {
        slots = places.map { Slot(at: $0.value, id: $0.key) }.sorted(by: Self.isBefore)
    }

    private static func isBefore(_ left: Slot, _ right: Slot) -> Bool { (left.at, left.id) < (right.at, right.id) }

    private mutating func rise(_ start: Int) {
        var index = start
        while index > 0, case let parent = (index - 1) / 2, Self.isBefore(slots[index], slots[parent]) {
            slots.swapAt(index, parent)
            index = parent
        }
    }

    private mutating func sink(_ start: Int) {
        var index = start
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2] where child < slots.count && Self.isBefore(slots[child], slots[least]) {
                least = child
            }
            if least == index { return }
            slots.swapAt(index, least)
            index = least
        }
    }
}
