// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPTransport
import LoadingModel
import NIOCore

/// A response whose body has not been read yet.
struct Answer {
    let response: LoadResponse
    let body: any ResponseBody
    let transaction: Transaction

    /// The time limit for reading the body of a response that another request follows.
    private static let patience = TimeAmount.seconds(1)

    /// Reads the rest of a small body, so that the next hop can use the connection.
    ///
    /// Cancels a body that is larger or does not arrive in time: the app does not wait for unused data.
    @inline(never)
    func discard(in control: LoadControl) async {
        let timer = limitTime(in: control)
        defer { timer.cancel() }
        var taken = 0
        do throws(LoadError) {
            while taken < 65_536, response.expectedLength < 65_536, let piece = try await body.next() {
                taken += piece.readableBytes
            }
        } catch {
            // The content of the response does not matter; a persistent failure will reappear on the next hop.
        }
        body.cancel()
    }

    /// Cancels a body that does not arrive in time.
    func limitTime(in control: LoadControl) -> Scheduled<Void> {
        let bound = NIOLoopBound((body: body, control: control), eventLoop: control.loop)
        return control.loop.scheduleTask(in: Self.patience) {
            bound.value.body.cancel()
            bound.value.control.wake()
        }
    }
}

/// The body of a response, in pieces.
protocol ResponseBody: AnyObject {
    /// Returns the next piece, or nil at the end. Waits in the load's `LoadControl`.
    func next() async throws(LoadError) -> ByteBuffer?
    /// Discards the rest of the body. Has no effect after the end.
    func cancel()
    /// Returns the whole body if it is in memory and has not been read yet.
    func takeWhole() -> Data?
}

extension ResponseBody {
    func takeWhole() -> Data? { nil }
}
