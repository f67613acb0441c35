//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// What waits in line: adding to it and taking from it cost the same however long it is.
///
/// An array for each end. The front is the back turned round, whenever it has run out: each element is moved once.
struct FirstInFirstOut<Element> {
    private var front: [Element] = []
    private var back: [Element] = []

    var isEmpty: Bool { front.isEmpty && back.isEmpty }

    mutating func append(_ element: Element) { back.append(element) }

    mutating func append(contentsOf elements: some Sequence<Element>) { back.append(contentsOf: elements) }

    /// The oldest, or nil where there is none.
    mutating func popFirst() -> Element? {
        if front.isEmpty {
            front = back.reversed()
            back = []
        }
        return front.popLast()
    }
}
