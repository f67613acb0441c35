// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import LoadingModel
import NIOCore
import SystemThreads
import TransportMachines

/// Looks up where servers speak HTTP/3 according to HTTPS records (RFC 9460), for several sessions, on its own threads.
///
/// What records say is cached for their TTL, at most an hour; the absence of records for as long as the name server says, or a
/// minute; a failure for five seconds.
package final class ServiceBindingSource: Sendable {
    package enum Reply: Sendable {
        /// A message of DNS.
        case message([UInt8])
        /// There are no records that may be used, because the zone is not signed.
        case unsigned
        case failed(String)
    }

    /// Asks for the HTTPS records of a name; blocks until there is a reply, for about this number of milliseconds at most.
    package typealias Ask = @Sendable (_ name: String, _ milliseconds: Int) -> Reply

    typealias Lookups = SharedLookups<[HTTPSEndpoint]>

    /// The maximum time for one question, and for all questions of a search, which is checked between two questions.
    private static let questionLimit = TimeAmount.seconds(5)
    private static let searchLimit = TimeAmount.seconds(10)
    private static let longestLifetime = 3_600
    private static let absenceLifetime = 60
    /// The lifetime of failures, and the least lifetime of an absence.
    private static let failureLifetime = 5

    let lookups: Lookups
    private let canAsk: @Sendable () -> Bool

    /// - Parameters:
    ///   - name: The name of the threads.
    ///   - hosts: The hosts that are not asked for.
    ///   - canAsk: Whether the library for `ask` is there; called on event loops, and quick from the second call on.
    ///   - ask: Asks for the records of a name, on one of the threads.
    package init(
        threads name: String, except hosts: HostsFile? = nil, canAsk: @escaping @Sendable () -> Bool = { true },
        ask: @escaping Ask
    ) {
        self.canAsk = canAsk
        // A lookup that is late only delays the use of HTTP/3.
        let threadCount = max(2, DescriptorLimit.threadsForNames() / 4)
        lookups = Lookups(threads: name, threadCount: threadCount) { question in
            guard case .services(let port) = question.subject, hosts?.contains(question.host) != true,
                let search = ServiceBindingSearch(host: question.host, port: port)
            else { return (.success([]), Self.nanoseconds(Self.absenceLifetime)) }
            return Self.answer(search, question.host, ask)
        }
    }

    /// Whether a library can ask for records; if not, nothing is asked.
    var isAvailable: Bool { canAsk() }

    private static func nanoseconds(_ seconds: Int) -> Int64 { Int64(seconds) * 1_000_000_000 }

    private static func answer(
        _ search: ServiceBindingSearch, _ host: String, _ ask: Ask
    ) -> (answer: Lookups.Answer, lifetime: Int64) {
        do throws(LoadError) {
            let outcome = try outcome(search, host, ask)
            let seconds =
                outcome.endpoints.isEmpty ? max(outcome.seconds ?? absenceLifetime, failureLifetime) : outcome.seconds ?? 0
            return (.success(outcome.endpoints), nanoseconds(min(seconds, longestLifetime)))
        } catch {
            return (.failure(error), nanoseconds(failureLifetime))
        }
    }

    private static func outcome(
        _ search: ServiceBindingSearch, _ host: String, _ ask: Ask
    ) throws(LoadError) -> ServiceBindingSearch.Outcome {
        var search = search
        var generator = SystemRandomNumberGenerator()
        let end = NIODeadline.now() + searchLimit
        func failure(_ reason: String) -> LoadError {
            LoadError(.dnsLookupFailed, "looking up the HTTPS records of \(host): \(reason)")
        }
        while let name = search.question.host {
            let rest = min(end - NIODeadline.now(), questionLimit)
            guard rest > .zero else { throw failure("no name server answered in time") }
            let answer: ServiceBindings
            switch ask(name, Int(max(1, rest.nanoseconds / 1_000_000))) {
            case .message(let message):
                do throws(ServiceBindings.Failure) { answer = try ServiceBindings(message, for: search.question) } catch {
                    throw failure(error.message)
                }
            case .unsigned: return ServiceBindingSearch.Outcome(endpoints: [], seconds: nil)
            case .failed(let reason): throw failure(reason)
            }
            if case .end(let outcome) = search.take(answer, using: &generator) { return outcome }
        }
        // An alias leads to a name that no host has.
        return ServiceBindingSearch.Outcome(endpoints: [], seconds: nil)
    }
}
