// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation

/// The size of a terminal in columns and rows.
enum TerminalWidth {
    /// The columns of standard error's terminal.
    static var columns: Int { size(of: STDERR_FILENO).columns }

    static func size(of descriptor: Int32) -> (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return (80, 24) }
        return (Int(size.ws_col), size.ws_row > 0 ? Int(size.ws_row) : 24)
    }

    /// Calls a closure when the terminal is resized, until the returned source is cancelled.
    static func watch(_ body: @escaping @Sendable () -> Void) -> any DispatchSourceSignal {
        let source = DispatchSource.makeSignalSource(signal: SIGWINCH, queue: .global())
        source.setEventHandler(handler: body)
        source.resume()
        return source
    }
}
