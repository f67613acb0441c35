//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

extension TransferScheduler {
    /// A transfer's number.
    package typealias ID = Int64

    /// What may go on at a time, and how long things take.
    package struct Limits: Sendable, Hashable {
        /// Of all programs together.
        package var simultaneous = 16
        /// To one host, of all programs together.
        package var perHost = 6
        /// Seconds of the first pause after a failed attempt; each one after it doubles.
        package var firstPause = 2.0
        package var longestPause = 900.0
        /// The longest that a server may ask to wait.
        package var longestRetryAfter = 86_400.0
        /// Bytes a second over ``floorWindow`` below which a transfer gives its place to one that waits.
        package var floor = 100.0
        package var floorWindow = 60.0
        /// Seconds in which those that waited for the network begin when it is back.
        package var spread = 2.0
        /// Seconds of waiting that weigh as much as the whole range of priorities.
        package var aging = 600.0

        package init() {}
    }

    /// What the machine is like.
    package struct Conditions: Sendable, Hashable {
        /// There is a way to other networks.
        ///
        /// Without one there may be some to near hosts, which is found out by trying.
        package var isConnected = true
        package var isMetered = false
        package var hasExternalPower = true
        package var hasSpace = true

        package init() {}

        var allowDiscretionary: Bool { !isMetered && hasExternalPower }
    }

    /// A transfer as far as its turn goes.
    package struct Item: Sendable, Hashable {
        package var id: ID
        package var program: Int64
        package var session: Int64
        package var host: String
        /// The host and its port.
        package var origin: String
        /// The most to this host of this session.
        package var hostLimit: Int
        /// 0 to 1.
        package var priority: Float
        package var isDiscretionary = false
        package var isUpload = false
        /// It leads to the machine itself, and needs no network.
        package var isLocal = false
        package var earliestBegin: Double?
        package var deadline: Double
        package var isHeld = false
        /// Attempts in a row that moved nothing.
        package var attempts = 0
        /// Not before that, after a failed attempt.
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

    /// Why a transfer does not run.
    package enum WaitReason: Hashable, Sendable {
        case turn, host
        case earliestBegin(Double)
        case retry(at: Double, attempts: Int)
        /// The origin did not answer so often in a row.
        case origin(until: Double, attempts: Int)
        case network, meteredOrBattery, held, space
    }

    package enum Event: Hashable, Sendable {
        case added(Item)
        /// It is over, or given up; it does not run any more.
        case removed(ID)
        case held(ID)
        case released(ID)
        case priorityChanged(ID, Float)
        /// The server answered it, whatever it said.
        case answered(ID)
        /// All that it moved so far.
        case progressed(ID, bytes: Int64)
        /// It does not run any more, as it was told to stop.
        case stopped(ID)
        /// It does not run any more, and is to be tried again.
        case failed(ID, Failure, madeProgress: Bool, retryAfter: Double?, random: UInt64)
        case conditionsChanged(Conditions, random: UInt64)
        /// It runs, and finds no way to its host.
        case lacksNetwork(ID)
        /// There may be a way to some hosts now.
        case networkChanged
        /// What it needs of the disk is not there, or is there again, whatever others find.
        case lacksSpace(ID)
        case foundSpace(ID, endsPause: Bool)
        /// The clock was set: instants that are counted from now move along.
        case clockMoved(by: Double)
        case tick
    }

    package enum Action: Hashable, Sendable {
        case start(ID)
        /// Answered by `stopped`, `failed` or `removed`; the place is taken until then.
        case stop(ID, StopReason)
        /// The time is over in which it should have ended.
        case expire(ID)
        /// When `tick` is to come; nil for not at all.
        case wake(at: Double?)
    }
}
