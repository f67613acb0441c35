// SPDX-License-Identifier: Apache-2.0

import CQUIC
import NIOCore
import NIOPosix

@testable import HTTPTransport

/// Returns the fake behind a handle of the library.
private func fakeConnection(_ connection: OpaquePointer?) -> FakeQUIC {
    guard let connection else { preconditionFailure("no connection") }
    return Unmanaged<FakeQUIC>.fromOpaque(UnsafeRawPointer(connection)).takeUnretainedValue()
}

extension FakeQUIC {
    /// The functions of all fake connections; they live as long as the process.
    static let library: QUICLibrary = {
        let table = UnsafeMutablePointer<cquic_library>.allocate(capacity: 1)
        table.initialize(to: cquic_library())
        table.pointee.tells_settings = 1
        fill(&table.pointee)
        return QUICLibrary(UnsafePointer(table))
    }()

    /// Where a fake connection is found once it was made, on the thread that makes it.
    //
    // `@unchecked`: it is used on the thread that sets it.
    final class Maker: @unchecked Sendable {
        var made: FakeQUIC?
    }

    static let maker = ThreadSpecificVariable<Maker>()

    /// Returns the fake that `body` makes by connecting.
    static func made<Failure: Error>(by body: () throws(Failure) -> Void) throws(Failure) -> FakeQUIC? {
        let maker = Maker()
        Self.maker.currentValue = maker
        defer { Self.maker.currentValue = nil }
        try body()
        return maker.made
    }

    private static func fill(_ table: inout cquic_library) {
        table.connect = { settings, _ in
            guard let settings, let maker = FakeQUIC.maker.currentValue else { return nil }
            let fake = FakeQUIC(settings.pointee)
            maker.made = fake
            // The test keeps it, so that a use after the end is seen, and does no harm.
            return OpaquePointer(Unmanaged.passUnretained(fake).toOpaque())
        }
        table.destroy = { fakeConnection($0).destroy() }
        table.receive = { connection, _, _, _ in
            let fake = fakeConnection(connection)
            let events = fake.arriving
            fake.arriving = []
            return fake.work(events, "receive")
        }
        table.expire = { connection, _ in
            let fake = fakeConnection(connection)
            let events = fake.expiring
            fake.expiring = []
            fake.expiry = .max
            return fake.work(events, "expire")
        }
        table.send = { connection, buffer, _, packets, _ in
            let fake = fakeConnection(connection)
            let events = fake.sending
            fake.sending = []
            let isOpen = fake.work(events, "send")
            let writes = fake.batches > 0
            if writes { fake.batches -= 1 }
            buffer?.initialize(to: 0)
            packets?.pointee = cquic_packets(
                count: writes ? 1 : 0, packet_size: writes ? 1 : 0, size: writes ? 1 : 0, ecn: 0,
                has_more: fake.batches > 0 ? 1 : 0)
            return isOpen
        }
        table.expiry = { fakeConnection($0).number(fakeConnection($0).expiry) }
        table.failure = { $1?.pointee = fakeConnection($0).failure }
        table.close = { connection, isApplication, code, _, buffer, _, _ in
            fakeConnection(connection).close(isApplication: isApplication != 0, code: code)
            buffer?.initialize(to: 0)
            return 1
        }
        fillHandshake(&table)
        fillStreams(&table)
    }

    private static func fillHandshake(_ table: inout cquic_library) {
        table.certificate = { _, _, _ in 0 }
        table.tls = { $1?.pointee = cquic_tls() }
        table.accepted_issuer = { _, _, _ in 0 }
        table.ping = { connection, _ in fakeConnection(connection).note(.ping, "ping", mayBeWithin: true) }
        table.keep_alive = { fakeConnection($0).note(.keepAlive($1), "keepAlive", mayBeWithin: true) }
        table.migrate = { connection, _, _, _ in
            let fake = fakeConnection(connection)
            fake.note(.migrate, "migrate", mayBeWithin: false)
            return fake.migrates ? 1 : 0
        }
        table.round_trip = { fakeConnection($0).number(10_000_000) }
        table.idle_timeout = { fakeConnection($0).number(30_000_000_000) }
        table.bytes_in_flight = { fakeConnection($0).number(0) }
    }

    private static func fillStreams(_ table: inout cquic_library) {
        table.request = { connection, _, _, hasBody in fakeConnection(connection).request(hasBody: hasBody != 0) }
        table.send_body = { fakeConnection($0).body($1, $2.count, isLast: $3 != 0) }
        table.end_body = { fakeConnection($0).body($1, 0, isLast: true) }
        table.credit = { fakeConnection($0).note(.credit($1, $2), "credit", mayBeWithin: true) }
        table.cancel = { fakeConnection($0).cancel($1, $2, isSilent: $3 != 0) }
        table.cancel_sending = { fakeConnection($0).cancelSending($1, $2) }
        table.prioritize = { connection, id, text in
            fakeConnection(connection).note(
                .prioritize(id, text.map { String(cString: $0) } ?? ""), "prioritize", mayBeWithin: true)
        }
    }
}
