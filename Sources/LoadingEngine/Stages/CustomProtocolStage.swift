// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore

/// Lets the app's own `URLProtocol` classes load a request, before any built-in stage.
final class CustomProtocolStage: LoadStage {
    func step(_ hop: Hop, in load: Load) -> StageStep { load.wants(.customLoaders) ? .needsTask : .proceed }

    func answer(_ hop: Hop, in load: Load, then next: LowerStages) async throws(LoadError) -> Answer {
        guard case .customLoader(let loader) = try await load.ask(.customLoader(hop.request)),
            let loader
        else {
            return try await next.answer(hop, in: load)
        }
        try await load.control.waitWhileSuspended()
        let transaction = Transaction(request: hop.request, now: .now())
        load.begin(transaction)
        let body = CustomBody(loader: loader, load: load, transaction: transaction)
        loader.start(reportingTo: CustomSink(body, loop: load.session.loop))
        do {
            let response = try await body.response()
            transaction.response = response
            return Answer(response: response, body: body, transaction: transaction)
        } catch {
            body.cancel()
            throw error
        }
    }
}

/// The events that the app's protocol has reported and the load has not processed yet.
///
/// The app's protocol has no backpressure, so the number of events is not limited.
final class CustomBody: ResponseBody {
    private let loader: any CustomLoader
    private let load: Load
    private var control: LoadControl { load.control }
    private let transaction: Transaction
    private var reported: LoadResponse?
    private var pieces = CircularBuffer<Data>()
    private var ending: Result<Void, LoadError>?
    private var isStopped = false
    private(set) var redirect: LoadRequest?

    init(loader: any CustomLoader, load: Load, transaction: Transaction) {
        self.loader = loader
        self.load = load
        self.transaction = transaction
    }

    func response() async throws(LoadError) -> LoadResponse {
        while true {
            try control.check()
            if !control.isSuspended {
                if let reported { return reported }
                if let ending {
                    try ending.get()
                    let url = transaction.request.url ?? URL(fileURLWithPath: "/")
                    return LoadResponse(url: url, kind: .local(mimeType: nil, textEncoding: nil), expectedLength: -1)
                }
            }
            await control.wait()
        }
    }

    func next() async throws(LoadError) -> ByteBuffer? {
        while true {
            try control.check()
            if !control.isSuspended {
                if let piece = pieces.popFirst() { return ByteBuffer(bytes: piece) }
                if let ending {
                    stop()
                    try ending.get()
                    if let answer = loader.takeResponse() { try await keep(answer) }
                    return nil
                }
            }
            await control.wait()
        }
    }

    /// Stores the response, unless the delegate objects.
    private func keep(_ answer: CachedResponse) async throws(LoadError) {
        var answer = answer
        if load.wants(.willCache), (200...299).contains(answer.response.head?.status ?? 200) {
            guard case .cached(let decided?) = try await load.ask(.willCache(answer)), decided.storagePolicy != .notAllowed else {
                return
            }
            answer = decided
        }
        let slot = LoopSlot<Void>(control)
        loader.keep(answer) { slot.fill(()) }
        _ = try await slot.waitForDisk(in: control, timeout: load.requestTimeout)
    }

    func cancel() { stop() }

    private func stop() {
        guard !isStopped else { return }
        isStopped = true
        transaction.end = .now()
        loader.stop()
    }

    // MARK: Reports, on the loop

    func received(_ response: LoadResponse, redirect: LoadRequest?) {
        guard ending == nil, reported == nil || pieces.isEmpty else { return }
        reported = response
        if let redirect {
            self.redirect = redirect
            ending = .success(())
        }
        progressed()
    }

    func received(_ data: Data) {
        guard ending == nil, !isStopped, !data.isEmpty else { return }
        pieces.append(data)
        transaction.bodyBytes += Int64(data.count)
        transaction.bodyBytesAfterDecoding += Int64(data.count)
        progressed()
    }

    func ended(_ result: Result<Void, LoadError>) {
        guard ending == nil else { return }
        ending = result
        progressed()
    }

    private func progressed() {
        control.markProgress(.now())
        control.wake()
    }
}

/// The thread-safe side of a ``CustomBody``.
private final class CustomSink: CustomLoaderSink {
    private let body: NIOLoopBound<CustomBody>

    init(_ body: CustomBody, loop: any EventLoop) { self.body = NIOLoopBound(body, eventLoop: loop) }

    func received(response: LoadResponse) { post { $0.received(response, redirect: nil) } }
    func received(data: Data) { post { $0.received(data) } }
    func redirected(to request: LoadRequest, response: LoadResponse) { post { $0.received(response, redirect: request) } }
    func finished() { post { $0.ended(.success(())) } }
    func failed(_ error: LoadError) { post { $0.ended(.failure(error)) } }

    private func post(_ report: @escaping @Sendable (CustomBody) -> Void) {
        let body = body
        body.eventLoop.execute { report(body.value) }
    }
}
