// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore

// Reports requests to observers. Without the package traits `Logging`, `Metrics` and `Tracing`, the methods are empty and their
// calls are optimized away.

extension TaskOrder {
    /// Uses the observer of another order for the same task.
    mutating func observe(with other: TaskOrder) {
        #if Logging || Metrics || Tracing
        observer = other.observer
        #endif
    }
}

extension Load {
    /// Reports the end of the last request, unless its end has already been reported.
    @inline(__always)
    func observeEnd(_ result: Result<TaskOutcome.Body, LoadError>) {
        #if Logging || Metrics || Tracing
        guard let transaction, transaction.observer != nil else { return }
        if case .failure(let error) = result { transaction.observeEnd(of: error) } else { transaction.observeEnd() }
        #endif
    }
}

extension Transaction {
    /// Reports that a request is about to be sent, and adds the observer's header fields to it.
    @inline(__always)
    func observe(_ hop: Hop, in load: Load) {
        #if Logging || Metrics || Tracing
        if let order = load.order.observer { observe(hop, in: load, by: order) }
        #endif
    }

    /// Reports that the response head has arrived.
    ///
    /// A switch of protocols ends the request.
    @inline(__always)
    func observeAnswer() {
        #if Logging || Metrics || Tracing
        guard let observer else { return }
        observer.answered(observedResponse)
        if exchange?.hasSwitched == true { observeEnd() }
        #endif
    }

    /// Reports, at most once, that the request is over.
    @inline(__always)
    func observeEnd(_ failure: LoadError? = nil) {
        #if Logging || Metrics || Tracing
        if let observer = observer.take() { tellEnd(failure, to: observer) }
        #endif
    }

    #if Logging || Metrics || Tracing
    /// Reports the end of the request when the load has failed.
    ///
    /// If the load fails because a redirect is not followed, the request itself has not failed: the redirect was its response.
    fileprivate func observeEnd(of error: LoadError) {
        let isAnswered = exchange?.record.responseEnd != nil && 300...399 ~= response?.head?.status ?? 0
        observeEnd(isAnswered ? nil : error)
    }

    @inline(never)
    private func observe(_ hop: Hop, in load: Load, by loadObserver: any LoadObserver) {
        guard let message = hop.preparation.message, let url = hop.request.url else { return }
        let origin = message.target.origin
        let observer = loadObserver.willSend(
            ObservedRequest(
                task: load.id, method: message.head.method, url: url, host: origin.host, port: origin.port,
                resendCount: load.observation.count, cause: load.cause(of: hop), begin: WallClock.seconds(fetchStart)))
        load.observation.count += 1
        load.observation.hop = hop.number
        load.observation.last = self
        self.observer = observer
        guard !observer.fields.isEmpty else { return }
        let fields = PropagatedFields.admitted(
            observer.fields, beside: message.head.headers, leftOrigin: hop.followUp.leftOrigin)
        if !fields.isEmpty { hop.preparation.carry(fields) }
    }

    @inline(never)
    private func tellEnd(_ failure: LoadError?, to observer: any RequestObserver) {
        let end = exchange?.record.responseEnd ?? .now()
        observer.ended(
            ObservedEnd(
                response: observedResponse, failure: failure, duration: max(0, (end - fetchStart).nanoseconds),
                sentBodyBytes: sentBodyBytes, receivedBodyBytes: exchange?.record.responseBodyBytes ?? 0))
    }

    private var observedResponse: ObservedResponse {
        let head = exchange?.head
        let version = exchange.map { $0.version == .http1 ? head?.minorVersion == 0 ? "1.0" : "1.1" : "\($0.version.number)" }
        return ObservedResponse(status: head?.status, version: version, connection: exchange?.facts)
    }
    #endif
}

#if Logging || Metrics || Tracing
extension Load {
    fileprivate func cause(of hop: Hop) -> ObservedRequest.Cause {
        guard observation.count > 0 else { return .first }
        if hop.errand != nil { return .resumption }
        if hop.number != observation.hop { return .redirect }
        guard let earlier = observation.last?.exchange?.head?.status else { return .failure }
        return earlier == 401 || earlier == 407 ? .authentication : .answer
    }
}
#endif
