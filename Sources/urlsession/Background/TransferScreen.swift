// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import Dispatch
import Foundation
import Synchronization

/// Shows the progress of transfers: on a terminal as bars that are redrawn in place, elsewhere as a line for each change.
final class TransferScreen: Sendable {
    enum Output: Sendable { case standardOutput, standardError }

    private struct State {
        var table = TransferTable()
        /// The widths of the lines on the screen.
        var drawn: [Int] = []
        var shown: ContinuousClock.Instant?
        /// Whether a redraw is scheduled.
        var isAwaited = false
        var isFinished = false
        var resizes: (any DispatchSourceSignal)?
    }

    /// The minimum time between two redraws.
    private static let interval = Duration.milliseconds(200)

    private let output: Output
    private let isTerminal: Bool
    private let isWanted: Bool
    private let state = Mutex(State())

    init(_ output: Output, isWanted: Bool = true) {
        self.output = output
        self.isWanted = isWanted
        isTerminal = output == .standardOutput ? StandardOutput.isTerminal : StandardError.isTerminal
        guard isTerminal, isWanted else { return }
        state.withLock { state in
            state.resizes = TerminalWidth.watch { [weak self] in self?.draw() }
        }
        tick()
    }

    /// - Returns: Whether all transfers have ended, and only programs other than `own` still have to collect transfers.
    @discardableResult
    func update(_ reports: [BackgroundProtocol.TransferReport], own: String? = nil) -> Bool {
        let now = ContinuousClock.now
        return state.withLock { state in
            let news = state.table.take(reports, at: now)
            if isTerminal { scheduleRedraw(&state, now) } else { write(news.map { TransferText.line($0) + "\n" }.joined()) }
            return state.table.isDone(except: own)
        }
    }

    /// Writes a line above the bars; with `always`, even if nothing else is to be shown.
    func say(_ line: String, always: Bool) {
        let line = TextTable.sanitized(line) + "\n"
        guard isWanted else {
            if always { StandardError.write(line) }
            return
        }
        state.withLock { state in
            guard isTerminal, state.shown != nil, !state.isFinished else { return write(line) }
            write(erasure(&state) + line)
            draw(&state)
        }
    }

    /// Draws the last state, which stays on the screen, and stops redrawing.
    func finish() {
        state.withLock { state in
            guard !state.isFinished else { return }
            if isTerminal, state.shown != nil {
                draw(&state)
                write("\n")
            }
            state.isFinished = true
            state.resizes?.cancel()
            state.resizes = nil
        }
    }

    // MARK: Drawing

    /// Redraws running transfers once a second, because their rate falls when no data arrives.
    private func tick() {
        DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in
            guard let self else { return }
            let continues = state.withLock { state in
                guard !state.isFinished else { return false }
                if state.table.isRunning { scheduleRedraw(&state, .now) }
                return true
            }
            if continues { tick() }
        }
    }

    private func scheduleRedraw(_ state: inout State, _ now: ContinuousClock.Instant) {
        guard !state.isAwaited else { return }
        guard let shown = state.shown, shown.duration(to: now) < Self.interval else { return draw(&state) }
        state.isAwaited = true
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(200)) { [weak self] in self?.draw() }
    }

    private func draw() {
        state.withLock { state in
            state.isAwaited = false
            if state.shown != nil { draw(&state) }
        }
    }

    private func draw(_ state: inout State) {
        guard !state.isFinished else { return }
        let now = ContinuousClock.now
        state.shown = now
        let erasure = erasure(&state)
        let size = TerminalWidth.size(of: descriptor)
        let lines = state.table.lines(columns: size.columns, height: size.rows, at: now)
        state.drawn = lines.map(\.count)
        write(erasure + lines.joined(separator: "\u{1B}[K\n") + "\u{1B}[J")
    }

    /// Returns the text that moves the cursor to the start of the drawing and erases the drawing.
    ///
    /// If the terminal became narrower, it has wrapped the lines, so the drawing is higher than its number of lines.
    private func erasure(_ state: inout State) -> String {
        let columns = max(1, TerminalWidth.size(of: descriptor).columns)
        let height = state.drawn.reduce(0) { $0 + max(1, ($1 + columns - 1) / columns) }
        state.drawn = []
        return (height > 1 ? "\r\u{1B}[\(height - 1)A" : "\r") + "\u{1B}[J"
    }

    private var descriptor: Int32 { output == .standardOutput ? STDOUT_FILENO : STDERR_FILENO }

    private func write(_ text: String) {
        guard isWanted, !text.isEmpty else { return }
        switch output {
        case .standardError: StandardError.write(text)
        case .standardOutput:
            do throws(ToolFailure) {
                try StandardOutput.write(text)
            } catch {
                // The reader has closed the pipe.
                exit(error.code)
            }
        }
    }
}
