// SPDX-License-Identifier: Apache-2.0

import CQUIC

/// The functions by which the library reports to a ``QUICConnection``.
enum QUICEvents {
    /// Sendable because the table is never changed, and never freed.
    private struct Table: @unchecked Sendable {
        let functions: UnsafePointer<cquic_events>
    }

    static var table: UnsafePointer<cquic_events> { shared.functions }

    private static let shared: Table = {
        let table = UnsafeMutablePointer<cquic_events>.allocate(capacity: 1)
        table.initialize(
            to: cquic_events(
                handshake_completed: { owner($0)?.handshakeCompleted() },
                requests_allowed: { connection($0)?.allowed(requests: $1) },
                settings: { connection($0)?.announced(sectionLimit: $1, allowsExtendedConnect: $2 != 0) },
                section_began: { owner($0)?.sectionBegan($1, isTrailers: $2 != 0) },
                field: { owner($0)?.field($1, $2.bytes, $3.bytes) },
                section_ended: { owner($0)?.sectionEnded($1, endsStream: $2 != 0) },
                content: { owner($0)?.content($1, $2.bytes) },
                response_ended: { owner($0)?.responseEnded($1) },
                body_sent: { owner($0)?.bodySent($1) },
                stopped: { owner($0)?.stopped($1, HTTP3ErrorCode(rawValue: $2)) },
                reset: { owner($0)?.reset($1, HTTP3ErrorCode(rawValue: $2)) },
                closed: { owner($0)?.closed($1, HTTP3ErrorCode(rawValue: $2)) },
                going_away: { connection($0)?.isGoingAway(firstUnprocessed: $1) }))
        return Table(functions: UnsafePointer(table))
    }()

    private static func connection(_ context: UnsafeMutableRawPointer?) -> QUICConnection? {
        context.map { Unmanaged<QUICConnection>.fromOpaque($0).takeUnretainedValue() }
    }

    private static func owner(_ context: UnsafeMutableRawPointer?) -> (any QUICConnectionOwner)? { connection(context)?.owner }
}
