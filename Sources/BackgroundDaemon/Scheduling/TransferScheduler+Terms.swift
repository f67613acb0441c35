// SPDX-License-Identifier: Apache-2.0

extension TransferScheduler {
    /// A transfer's number.
    package typealias ID = Int64

    /// Limits on concurrent transfers and on times.
    package struct Limits: Sendable, Hashable {
        /// The maximum number of running transfers, for all programs together.
        package var simultaneous = 16
        /// The maximum number of running transfers per host, for all programs together.
        package var perHost = 6
        /// The maximum pause after the first failed attempt, in seconds; doubles after each further failed attempt.
        package var firstPause = 2.0
        package var longestPause = 900.0
        /// The longest pause, in seconds, that a server may request.
        package var longestRetryAfter = 86_400.0
        /// The rate in bytes per second, measured over ``floorWindow``, below which a transfer gives its slot to a waiting
        /// transfer.
        package var floor = 100.0
        package var floorWindow = 60.0
        /// How long a transfer that has sent its whole content may wait for the response before its speed counts, in seconds.
        ///
        /// A server that sends interim responses without end would otherwise keep the slot until the transfer's deadline. The time
        /// doubles each time that the transfer has lost its slot in this way, because a server may really need that long.
        package var responseWait = 600.0
        /// The seconds over which transfers that waited for the network are started when the network is back.
        package var spread = 2.0
        /// The waiting time in seconds that outweighs the whole range of priorities.
        package var aging = 600.0

        package init() {}
    }

    /// The state of the machine.
    package struct Conditions: Sendable, Hashable {
        /// Whether there is a route to other networks.
        ///
        /// Without such a route, nearby hosts may still be reachable; only an attempt can tell.
        package var isConnected = true
        package var isMetered = false
        package var hasExternalPower = true
        package var hasSpace = true
        /// Whether transfers may run at this time of day.
        package var isWithinHours = true
        /// Whether a rate limit applies to all transfers together.
        package var isSlow = false

        package init() {}

        /// Whether the time of day, the cost of the network and the power supply allow a transfer to run.
        func allow(_ item: Item?) -> Bool {
            isWithinHours && (item?.isDiscretionary != true || !isMetered && hasExternalPower)
        }
    }

    /// The properties of a transfer that matter for scheduling.
    package struct Item: Sendable, Hashable {
        package var id: ID
        package var program: Int64
        package var session: Int64
        package var host: String
        /// The host and its port.
        package var origin: String
        /// The session's limit on transfers to this host.
        package var hostLimit: Int
        /// From 0 to 1.
        package var priority: Float
        package var isDiscretionary = false
        package var isUpload = false
        /// Whether the host is this machine, so that the transfer needs no network.
        package var isLocal = false
        package var earliestBegin: Double?
        package var deadline: Double
        package var isHeld = false
        /// The number of consecutive attempts without progress.
        package var attempts = 0
        /// The earliest time of the next attempt after a failed attempt.
        package var notBefore: Double?

        package init(
            id: ID, program: Int64, session: Int64, host: String, origin: String? = nil, hostLimit: Int = 6,
            priority: Float = 0.5, deadline: Double
        ) {
            self.id = id
            self.program = program
            self.session = session
            self.host = host
            self.origin = origin ?? host
            self.hostLimit = hostLimit
            self.priority = priority
            self.deadline = deadline
        }
    }

    package enum Failure: Hashable, Sendable { case network, server, noSpace, other }

    package enum StopReason: Hashable, Sendable { case held, conditions, yields, tooSlow, network }

    /// Why a transfer is not running.
    package enum WaitReason: Hashable, Sendable {
        case turn, host
        case earliestBegin(Double)
        case retry(at: Double, attempts: Int)
        /// The origin did not respond to this many consecutive attempts.
        case origin(until: Double, attempts: Int)
        case network, meteredOrBattery, held, space, hours
    }

    package enum Event: Hashable, Sendable {
        case added(Item)
        /// The transfer is over or given up, and is no longer running.
        case removed(ID)
        case held(ID)
        case released(ID)
        case priorityChanged(ID, Float)
        /// The server responded, whatever the content of the response.
        case answered(ID)
        /// Whether the whole content of a request was sent.
        ///
        /// If so, the conditions do not stop the transfer, because another attempt would make the server process the request
        /// twice. Until the response arrives, but at most for ``Limits/responseWait``, the transfer's speed does not count either.
        ///
        /// While a rate limit pauses the transfer, for that many seconds from now, the response cannot be seen.
        case sentAll(ID, Bool, pausedFor: Double = 0)
        case receivedResponse(ID)
        /// The transfer's total number of bytes so far.
        case progressed(ID, bytes: Int64)
        /// The transfer was told to stop, and is no longer running.
        case stopped(ID)
        /// The transfer is no longer running, and is to be retried.
        case failed(ID, Failure, madeProgress: Bool, retryAfter: Double?, random: UInt64)
        case conditionsChanged(Conditions, random: UInt64)
        /// A running transfer finds no route to its host.
        case lacksNetwork(ID)
        /// There may be a route to some hosts now.
        case networkChanged
        /// The disk space that this transfer needs is not available, or is available again; this does not affect other transfers.
        case lacksSpace(ID)
        case foundSpace(ID, endsPause: Bool)
        /// The clock was set, which shifts all times that were computed from the current time.
        case clockMoved(by: Double)
        case tick
    }

    package enum Action: Hashable, Sendable {
        case start(ID)
        /// The reply is `stopped`, `failed` or `removed`; the slot is occupied until then.
        case stop(ID, StopReason)
        /// The transfer's time limit has passed.
        case expire(ID)
        /// When `tick` is to be sent; nil for never.
        case wake(at: Double?)
    }
}
