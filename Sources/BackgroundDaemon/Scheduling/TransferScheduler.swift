package struct TransferScheduler: Sendable {
    package typealias ID = Int64
    package struct Limits: Sendable, Hashable {
        package var simultaneous = 16
        package init() {}
    }
    package struct Conditions: Sendable, Hashable {
        package var isConnected = true
        package var isMetered = false
        package var hasExternalPower = true
        package var hasSpace = true
        package init() {}
    }
    package struct Item: Sendable {
        package var id: ID
        package var program: Int64
        package var session: Int64
        package var host: String
        package var hostLimit: Int
        package var priority: Float
        package var isDiscretionary: Bool
        package var isUpload: Bool
        package var isLocal: Bool
        package var earliestBegin: Double?
        package var deadline: Double
        package var isHeld: Bool
        package var attempts = 0
        package var notBefore: Double?
    }
    package enum Failure: Sendable { case network, server, noSpace, other }
    package enum StopReason: Sendable { case held }
    package enum WaitReason: Sendable {
        case turn, host, earliestBegin(Double), retry(at: Double, attempts: Int), network, meteredOrBattery, held, space
    }
    package enum Event: Sendable {
        case added(Item), removed(ID), held(ID), released(ID), priorityChanged(ID, Float), progressed(ID, bytes: Int64), stopped(
            ID), failed(ID, Failure, madeProgress: Bool, retryAfter: Double?, random: UInt64), conditionsChanged(
                Conditions, random: UInt64), tick
    }
    package enum Action: Sendable { case start(ID), stop(ID, StopReason), expire(ID), wake(at: Double?) }
    package init(limits: Limits) {}
    package mutating func handle(_ event: Event, now: Double) -> [Action] {
        switch event {
        case .added(let item): return [.start(item.id)]
        default: return []
        }
    }
    package func waitReason(of id: ID) -> WaitReason? { nil }
}
