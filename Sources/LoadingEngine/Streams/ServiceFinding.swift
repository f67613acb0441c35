// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import LoadingModel
import SystemLibraries

extension StreamOrder {
    /// Returns the stream's endpoint.
    ///
    /// If the endpoint is a service, looks the service up on the local network first.
    ///
    /// The request timeout limits the lookup, except while the task is suspended. A result that arrives during suspension is used
    /// later.
    func located(in load: Load) async throws(LoadError) -> StreamOrder {
        guard let service else { return self }
        guard !load.session.policy.needs.requiresDNSSEC else {
            throw LoadError(
                .dnsLookupFailed,
                "finding the service \(service.name): its answers are not signed, but requiresDNSSECValidation is set")
        }
        try await load.control.waitWhileSuspended()
        let slot = LoopSlot<Result<ServiceLookups.Location, Avahi.Failure>>(load.control)
        let giveUp = ServiceLookups.shared.find(service) { slot.fill($0) }
        defer { giveUp() }
        switch try await slot.wait() {
        case .success(let place):
            return StreamOrder(host: place.host, port: place.port, addresses: place.addresses.map(\.text))
        case .failure(let failure): throw Self.error(failure, service)
        }
    }

    private static func error(_ failure: Avahi.Failure, _ service: ServiceName) -> LoadError {
        switch failure {
        case .absent(let reason), .failed(let reason):
            LoadError(.cannotFindHost, "finding the service \(service.name): \(reason)")
        case .invalid(let reason):
            LoadError(.badURL, "a stream task cannot connect to the service \(service.name) of type \(service.type): \(reason)")
        }
    }
}
