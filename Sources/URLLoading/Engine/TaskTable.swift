//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// A session's tasks by their numbers.
///
/// Numbers are given one after the other. So the last bits of one nearly always name a place that no other live task's has, and nothing
/// is hashed: that takes longer than all else that is done with a task here. Tasks whose place is taken are in a dictionary.
struct TaskTable {
    /// As many as a power of two.
    private var places: [URLSessionTask?] = Array(repeating: nil, count: fewestPlaces)
    private var others: [Int: URLSessionTask] = [:]
    private var count = 0

    private static let fewestPlaces = 16
    /// What a burst needed is not kept.
    private static let mostIdlePlaces = 1024

    var isEmpty: Bool { count == 0 }

    /// The tasks in the order of their numbers.
    var sorted: [URLSessionTask] { (places.compactMap { $0 } + others.values).sorted { $0.identity < $1.identity } }

    func contains(_ number: Int) -> Bool { places[place(of: number)]?.identity == number || others[number] != nil }

    /// Puts a task in, in place of the one that had its number.
    mutating func insert(_ task: URLSessionTask) {
        remove(task.identity)
        count += 1
        let place = place(of: task.identity)
        if places[place] == nil {
            places[place] = task
        } else {
            others[task.identity] = task
            if others.count > places.count { resize(to: 4 * places.count) }
        }
    }

    /// Takes a task out.
    @discardableResult mutating func remove(_ number: Int) -> URLSessionTask? {
        let place = place(of: number)
        let isInPlace = places[place]?.identity == number
        let task = isInPlace ? places[place].take() : others.isEmpty ? nil : others.removeValue(forKey: number)
        guard let task else { return nil }
        count -= 1
        if places.count > Self.mostIdlePlaces, count * 16 < places.count { resize(to: places.count / 4) }
        return task
    }

    private func place(of number: Int) -> Int { number & (places.count - 1) }

    private mutating func resize(to size: Int) {
        let tasks = sorted
        places = Array(repeating: nil, count: size)
        others = [:]
        count = 0
        for task in tasks { insert(task) }
    }
}
