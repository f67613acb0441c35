// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import Synchronization

/// Shows the progress of a transfer: on a terminal as a live bar of the terminal's width, elsewhere as a plain line for each 10 %.
final class ProgressMeter: Sendable {
    private struct State {
        var offset: Int64 = 0
        var done: Int64 = 0
        var total: Int64 = -1
        var started: ContinuousClock.Instant
        var shown: ContinuousClock.Instant?
        var shownTenth: Int64 = 0
        var rate: Double = 0
        var rated: (at: ContinuousClock.Instant, done: Int64)
        var isFinished = false
        /// Whether a redraw is scheduled.
        var isAwaited = false
        var resizes: (any DispatchSourceSignal)?
    }

    private let isTerminal: Bool
    private let state: Mutex<State>

    init(isTerminal: Bool = StandardError.isTerminal) {
        self.isTerminal = isTerminal
        let now = ContinuousClock.now
        state = Mutex(State(started: now, rated: (now, 0)))
        guard isTerminal else { return }
        state.withLock { state in
            state.resizes = TerminalWidth.watch { [weak self] in self?.redraw() }
        }
    }

    deinit {
        state.withLock { $0.resizes?.cancel() }
    }

    /// Sets the number of bytes that an earlier run loaded, which count as progress, but not toward the rate.
    func begin(at offset: Int64) {
        state.withLock { state in
            state.offset = offset
            state.done = offset
            state.rated = (.now, offset)
            state.shownTenth = 0
        }
    }

    func update(_ done: Int64, of total: Int64) {
        show { state in
            state.done = done
            state.total = total
            return isTerminal ? bar(&state) : line(&state)
        }
    }

    /// Writes the text while the lock is held, so that no bar appears after the summary.
    private func show(_ text: (inout State) -> String?) {
        state.withLock { state in
            if let text = text(&state) { StandardError.write(text) }
        }
    }

    /// Writes the final state, which stays on the screen, and stops redrawing.
    func finish() {
        show { state in
            guard !state.isFinished else { return nil }
            state.isFinished = true
            state.resizes?.cancel()
            state.resizes = nil
            guard state.done > 0 || state.shown != nil else { return nil }
            let seconds = state.started.duration(to: .now) / .seconds(1)
            state.rate = Double(state.done - state.offset) / max(seconds, 0.000_1)
            let summary =
                "\(ByteText.size(state.done)) in \(ByteText.rounded(seconds, digits: 1)) s, \(ByteText.rate(state.rate))"
            return isTerminal ? Self.line(state) + "\n" : "\(summary)\n"
        }
    }

    private func bar(_ state: inout State) -> String? {
        let now = ContinuousClock.now
        if let shown = state.shown, shown.duration(to: now) < .milliseconds(100) {
            // Draw the current state later, in case nothing more arrives for a while.
            guard !state.isAwaited else { return nil }
            state.isAwaited = true
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(100)) { [weak self] in self?.redraw() }
            return nil
        }
        state.shown = now
        measure(&state, now)
        return Self.line(state)
    }

    /// Redraws the bar after a change of the terminal's width, or when a scheduled redraw is due.
    private func redraw() {
        show { state in
            state.isAwaited = false
            return state.shown == nil || state.isFinished ? nil : Self.line(state)
        }
    }

    private func line(_ state: inout State) -> String? {
        let now = ContinuousClock.now
        if state.total > 0 {
            let tenth = state.done * 10 / state.total
            guard tenth > state.shownTenth else { return nil }
            state.shownTenth = tenth
        } else {
            guard (state.shown ?? state.started).duration(to: now) >= .seconds(2) else { return nil }
        }
        state.shown = now
        measure(&state, now)
        return Self.numbers(state).joined(separator: ", ") + "\n"
    }

    /// Updates the smoothed rate.
    private func measure(_ state: inout State, _ now: ContinuousClock.Instant) {
        let seconds = state.rated.at.duration(to: now) / .seconds(1)
        guard seconds > 0.05 else { return }
        let rate = Double(state.done - state.rated.done) / seconds
        state.rate = state.rate == 0 ? rate : state.rate * 0.8 + rate * 0.2
        state.rated = (now, state.done)
    }

    private static func line(_ state: State) -> String {
        let share = state.total > 0 ? Double(state.done) / Double(state.total) : nil
        return "\r\(drawing(numbers(state), filled: share, columns: TerminalWidth.columns))\u{1B}[K"
    }

    /// Draws the bar in the columns that the numbers leave free.
    ///
    /// Numbers are omitted from the last one on until the others fit; the bar is omitted if fewer than 8 columns are left for it.
    ///
    /// The last column stays free, because some terminals wrap the line after a character in that column.
    static func drawing(_ numbers: [String], filled share: Double?, columns: Int) -> String {
        let room = max(0, columns - 1)
        var numbers = numbers
        func length() -> Int { numbers.reduce(0) { $0 + $1.count } + 2 * max(0, numbers.count - 1) }
        while numbers.count > 1, length() > room { numbers.removeLast() }
        guard let share else { return String(numbers.joined(separator: "  ").prefix(room)) }
        let width = min(60, room - length() - 4)
        guard width >= 8 else { return String(numbers.joined(separator: "  ").prefix(room)) }
        let filled = Int(Double(width) * min(1, max(0, share)))
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: width - filled)
        return ([numbers[0], "[\(bar)]"] + numbers.dropFirst()).joined(separator: "  ")
    }

    private static func numbers(_ state: State) -> [String] {
        let rate = state.rate > 0 ? [ByteText.rate(state.rate)] : []
        guard state.total > 0 else { return [ByteText.size(state.done)] + rate }
        let percent = String(format: "%3lld %%", state.done * 100 / state.total)
        let left = state.isFinished || state.rate <= 0 ? nil : Double(state.total - state.done) / state.rate
        return [percent, "\(ByteText.size(state.done)) of \(ByteText.size(state.total))"] + rate
            + [left.map { ByteText.duration($0) + " left" }].compactMap(\.self)
    }
}
