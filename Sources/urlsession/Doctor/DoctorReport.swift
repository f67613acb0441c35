// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The result of `urlsession doctor`: the steps of a load in order, and a final sentence.
struct DoctorReport: Encodable, Sendable {
    enum Mark: String, Encodable, Sendable {
        /// The step succeeded.
        case good = "ok"
        /// The step has a problem, although the load may succeed.
        case note
        /// The step is the reason why the load fails.
        case bad = "fails"
        /// The step was not examined, or does not apply.
        case none = "-"
    }

    enum Stage: String, Encodable, Sendable {
        case url = "URL"
        case name, route, proxy, connection
        case tls = "TLS"
        case ats = "ATS"
        case hsts = "HSTS"
        case cache, cookies
        case httpVersion = "protocol"
        case answer
    }

    struct Step: Encodable, Sendable {
        let step: Stage
        var result: Mark
        /// The result as sentences.
        var lines: [String]
        /// The result as named values, for programs that read the JSON.
        var facts: [String: [String]]

        init(_ step: Stage, _ result: Mark, _ lines: [String], _ facts: [String: [String]] = [:]) {
            self.step = step
            self.result = result
            self.lines = lines
            self.facts = facts
        }
    }

    let url: String
    var steps: [Step] = []
    var verdict = ""
    /// The exit code, which is the same as that of `get`.
    var exitCode: Int32 = 0

    func text() -> String {
        var text = ""
        for step in steps {
            let title = step.step.rawValue
            let start = "\(padded(step.result.rawValue, to: 6))\(padded(title, to: 12))"
            for (index, line) in (step.lines.isEmpty ? [""] : step.lines).enumerated() {
                text += (index == 0 ? start : String(repeating: " ", count: start.count)) + TextTable.sanitized(line) + "\n"
            }
        }
        return text + "\n" + TextTable.sanitized(verdict) + "\n"
    }

    private func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(1, width - text.count))
    }
}
