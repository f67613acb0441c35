// SPDX-License-Identifier: Apache-2.0

/// A priority queue: a binary heap with an index of its elements.
struct PriorityQueue<ID: Hashable & Sendable, Place: Comparable & Sendable>: Sendable {
    private struct Slot: Sendable {
        var id: ID
        var at: Place
    }

    private var slots: [Slot] = []
    private var indices: [ID: Int] = [:]

    var isEmpty: Bool { slots.isEmpty }
    var count: Int { slots.count }

    /// All elements, in no particular order.
    var ids: [ID] { slots.map(\.id) }

    /// The first element.
    var first: (id: ID, at: Place)? { slots.first.map { ($0.id, $0.at) } }

    /// Returns the first element that satisfies a condition; the cost grows with the number of elements that precede that element.
    func first(where isWanted: (ID) -> Bool) -> ID? {
        guard let front = slots.first else { return nil }
        if isWanted(front.id) { return front.id }
        // The candidates are elements whose parent was checked without success.
        var next = PriorityQueue<Int, Place>()
        var index = 0
        while true {
            for child in [2 * index + 1, 2 * index + 2] where child < slots.count { next.insert(child, at: slots[child].at) }
            guard let (nearest, _) = next.first else { return nil }
            next.remove(nearest)
            if isWanted(slots[nearest].id) { return slots[nearest].id }
            index = nearest
        }
    }

    /// Inserts an element at a place, or moves it there.
    mutating func insert(_ id: ID, at place: Place) {
        if let index = indices[id] {
            let isSooner = place < slots[index].at
            slots[index].at = place
            if isSooner { rise(index) } else { sink(index) }
        } else {
            slots.append(Slot(id: id, at: place))
            indices[id] = slots.count - 1
            rise(slots.count - 1)
        }
    }

    mutating func remove(_ id: ID) {
        guard let index = indices.removeValue(forKey: id) else { return }
        let last = slots.removeLast()
        guard index < slots.count else { return }
        slots[index] = last
        indices[last.id] = index
        rise(index)
        if let index = indices[last.id] { sink(index) }
    }

    private mutating func swap(_ left: Int, _ right: Int) {
        slots.swapAt(left, right)
        indices[slots[left].id] = left
        indices[slots[right].id] = right
    }

    private mutating func rise(_ start: Int) {
        var index = start
        while index > 0, case let parent = (index - 1) / 2, slots[index].at < slots[parent].at {
            swap(index, parent)
            index = parent
        }
    }

    private mutating func sink(_ start: Int) {
        var index = start
        while true {
            var least = index
            let child = 2 * index + 1
            if child < slots.count, slots[child].at < slots[least].at { least = child }
            if child + 1 < slots.count, slots[child + 1].at < slots[least].at { least = child + 1 }
            if least == index { return }
            swap(index, least)
            index = least
        }
    }
}
