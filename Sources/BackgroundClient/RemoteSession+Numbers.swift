// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import LibC
package import LoadingModel
import SystemThreads

/// The numbers of tasks that this process performs itself: the daemon does not know of them, and cannot count after them.
///
/// A file has the highest number that may be in use, so that tasks of later processes get other numbers. Numbers are reserved in
/// blocks, so that few tasks write the file.
extension RemoteSession {
    private static let block = 100
    /// A larger number is damage, and would leave too few for later tasks.
    private static let largest = 1 << 52

    private var files: [String] { DaemonStarter.executable().map { place.numbers(of: identifier, in: $0) } ?? [] }

    /// Reserves the number of a task that this process performs.
    package func reserve(_ task: TaskID) {
        monitor.locked {
            guard task > reservedNumber else { return }
            reservedNumber = task + Self.block - 1
            for file in files { SmallFile.replace(file, with: Array(String(reservedNumber).utf8)) }
        }
    }

    func readReservedNumber() -> TaskID {
        let texts = files.compactMap { SmallFile.contents(of: $0, limit: 20).map { String(decoding: $0, as: UTF8.self) } }
        return texts.compactMap { TaskID($0) }.filter { 0...Self.largest ~= $0 }.max() ?? 0
    }

    func forgetReservedNumber() { for file in files { unlink(file) } }
}
