// SPDX-License-Identifier: Apache-2.0

extension TransferTerms: CodedFields {
    static var blank: Self { Self() }

    mutating func visit(_ coder: Coder) throws {
        let texts = try coder.list(1, "hours", coder.isReading ? nil : hours.map(\.text), .list("the hours", limit: 100))
        if coder.isReading {
            hours = try texts.map { text in
                guard let hours = DayHours(text) else {
                    throw MessageFailure.malformed("\(MessageFailure.excerpt(text)) is not a period of hours")
                }
                return hours
            }
        }
        try coder.optional(2, "rate", &rate, .holds("a rate is not positive") { $0 > 0 })
    }
}
