// SPDX-License-Identifier: Apache-2.0

/// The figures of one run, as a line of JSON.
struct Report {
    private var fields: [(String, Double)] = []

    mutating func set(_ name: String, _ value: Double) {
        fields.append((name, value))
    }

    mutating func setPercentiles(_ values: [Double]) {
        let sorted = values.sorted()
        guard !sorted.isEmpty else { return }
        set("p50_us", sorted[sorted.count / 2] * 1e6)
        set("p99_us", sorted[min(sorted.count - 1, sorted.count * 99 / 100)] * 1e6)
        set("max_us", sorted[sorted.count - 1] * 1e6)
    }

    var line: String {
        "{" + fields.map { "\"\($0.0)\": \($0.1)" }.joined(separator: ", ") + "}"
    }
}
