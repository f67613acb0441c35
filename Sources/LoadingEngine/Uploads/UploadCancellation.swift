// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPWire
import LoadingModel
import NIOCore

/// Cancels an upload at the server when the app has given it up (draft-ietf-httpbis-resumable-upload, "Upload Cancellation").
///
/// The cancellation runs as a separate load, for which the app's load does not wait.
enum UploadCancellation {
    /// The time limit of the request in seconds.
    private static let patience = 10.0

    static func start(_ request: LoadRequest, leftOrigin: Bool, in load: Load) {
        guard let url = request.url, let background = load.session.background else { return }
        // Over TLS, an app that judges servers would have to be asked, but the app's task is over: the upload is then not
        // canceled.
        guard !load.wants(.challenges) || Origin(url)?.isSecure == false else { return }
        var request = request
        request.timeout = patience
        let id = BackgroundLoads.next()
        let interests = load.order.interests.intersection([.cookies, .credentials])
        var order = TaskOrder(id: id, request: request, delivery: .stream, interests: interests)
        order.observe(with: load.order)
        order.endsUpload = true
        order.leftOrigin = leftOrigin
        let bound = NIOLoopBound(load.session, eventLoop: load.session.loop)
        // The time limit applies even if the server keeps sending slowly.
        let timer = load.session.loop.scheduleTask(in: .nanoseconds(Int64(patience * 1e9))) {
            bound.value.background?.commandInBackground(.cancel, for: id)
        }
        background.startInBackground(
            order, client: BackgroundClient(id, forwarding: load.client, session: load.session) { timer.cancel() })
    }
}
