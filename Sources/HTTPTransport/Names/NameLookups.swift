// SPDX-License-Identifier: Apache-2.0

package import LoadingModel
package import NIOCore
import Synchronization
import SystemThreads
import TransportMachines

/// Performs the host name lookups of all sessions of the process on its own threads.
///
/// If the TTL is unknown, addresses are cached for 5 seconds: long enough for a burst of connections, and too short for a changed
/// address to matter. The absence of addresses is cached for 1 second. A failed lookup is not cached, so that the next request
/// repeats it.
package final class NameLookups: Sendable {
    package typealias Answer = Result<[SocketAddress], LoadError>
    typealias Call = SharedLookups<[SocketAddress]>.Call
    typealias Machine = LookupMachine<Answer>
    /// Looks up a name's addresses of one family, or of both if the family is nil; blocks until there is a result.
    ///
    /// The ports of the addresses do not matter.
    package typealias Ask = @Sendable (_ host: String, NIOBSDSocket.ProtocolFamily?) -> Finding

    /// The result of a lookup.
    package struct Finding: Sendable {
        var answer: Answer
        /// How long to cache the result, in nanoseconds; nil if the TTL is unknown.
        var lifetime: Int64?

        package init(_ answer: Answer, lifetime: Int64? = nil) {
            self.answer = answer
            self.lifetime = lifetime
        }

        /// Creates a result from addresses of 4 or 16 bytes and their TTL in seconds, which is limited to an hour; an empty list
        /// has the default lifetime.
        package init(_ addresses: [[UInt8]], of host: String, seconds: Int) {
            let found = addresses.prefix(NameLookups.maximumAddressCount).compactMap {
                try? SocketAddress(packedIPAddress: ByteBuffer(bytes: $0), port: 0)
            }
            answer =
                found.isEmpty ? .failure(LoadError(.cannotFindHost, "looking up \(host): it has no address")) : .success(found)
            lifetime = found.isEmpty ? nil : Int64(min(max(seconds, 0), 3_600)) * 1_000_000_000
        }

        /// How long to cache the result, in nanoseconds.
        fileprivate var cachedFor: Int64 {
            switch answer {
            case _ where lifetime != nil: lifetime ?? 0
            case .success: NameLookups.addressLifetime
            case .failure(let error): error.kind == .cannotFindHost ? NameLookups.absenceLifetime : 0
            }
        }
    }

    /// The lookups that ask the system, for both families at once: with search domains (resolv.conf(5)), separate lookups could
    /// find different hosts.
    static let shared = NameLookups(threads: "url-names", asksNameServers: false) {
        Finding(SystemResolver.ask($0, port: 0, family: $1, flags: 0))
    }

    /// The maximum number of addresses per family, because a name server may be hostile; more addresses could not be tried in a
    /// reasonable time.
    static let maximumAddressCount = 16

    /// The maximum number of lookups that have their turn: `getaddrinfo` blocks a thread until the name servers answer, usually for
    /// at most 10 seconds.
    private static let threadCount = DescriptorLimit.threadsForNames()
    private static let addressLifetime: Int64 = 5_000_000_000
    private static let absenceLifetime: Int64 = 1_000_000_000

    private static let ownerCount = Atomic<Int>(0)

    /// Returns a new owner, whose lookups do not block those of other owners.
    static func newOwner() -> Machine.Owner { ownerCount.wrappingAdd(1, ordering: .relaxed).newValue }

    private let lookups: SharedLookups<[SocketAddress]>
    /// Whether `ask` queries name servers instead of the system.
    let asksNameServers: Bool

    /// Creates lookups with their own threads and cache.
    ///
    /// - Parameters:
    ///   - name: The name of the threads.
    ///   - asksNameServers: Whether `ask` queries name servers instead of the system.
    ///   - ask: Looks up names that are not cached, on one of the threads.
    package init(threads name: String, asksNameServers: Bool = true, ask: @escaping Ask) {
        self.asksNameServers = asksNameServers
        lookups = SharedLookups(threads: name, threadCount: Self.threadCount) { question in
            let family: NIOBSDSocket.ProtocolFamily? =
                switch question.subject {
                case .v4: .inet
                case .v6: .inet6
                case .both, .services: nil
                }
            let finding = ask(question.host, family)
            return (finding.answer, finding.cachedFor)
        }
    }

    /// Requests an answer for the call, which receives it after this method has returned.
    func want(_ question: Machine.Question, _ call: Call, _ owner: Machine.Owner) -> Machine.Caller {
        lookups.want(question, call, owner)
    }

    func leave(_ caller: Machine.Caller) { lookups.leave(caller) }

    package func forget() { lookups.forget() }
}
