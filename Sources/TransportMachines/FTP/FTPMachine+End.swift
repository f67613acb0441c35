// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// The end of a transfer: which replies and losses complete it, and which do not.
extension FTPMachine {
    mutating func takeEnd(_ reply: FTPReply) -> [Action] {
        if reply.isPreliminary { return [] }
        guard reply.code == 226 || reply.code == 250 else { return endRefused(reply) }
        // Without this check, a server could keep a load running forever.
        guard !isComplete else { return fail(.malformed, "the server completed the transfer twice: \(quote(reply))") }
        isComplete = true
        return state == .awaitingReason ? dataWasLost() : endOfTransfer()
    }

    private mutating func endRefused(_ reply: FTPReply) -> [Action] {
        if mayRequireSessionReuse(reply) { return failWithoutSessionReuse(reply) }
        let kind: Failure.Kind =
            switch reply.code {
            case 452, 552: .tooLarge
            case 532, 553: .mayNot
            default: .lost
            }
        failure = failure ?? Failure(kind: kind, message: "the transfer was not completed: \(quote(reply))")
        guard state == .transferring, count == nil, !plan.transfer.isStore else { return incomplete() }
        return [.expectEnd]
    }

    mutating func incomplete() -> [Action] {
        go(
            to: .over,
            .fail(failure ?? Failure(kind: .lost, message: "the server did not confirm that the transfer is complete")))
    }

    /// Whether a TLS server may be refusing a data connection because this connection does not resume the session of the control
    /// connection.
    func mayRequireSessionReuse(_ reply: FTPReply) -> Bool {
        guard plan.security != .none else { return false }
        return reply.code == 522 || reply.code == 425 || state == .securingData || state == .awaitingReason && count == nil
    }

    mutating func failWithoutSessionReuse(_ reply: FTPReply) -> [Action] {
        fail(
            .notSecure,
            """
            the data connection was refused: \(quote(reply)); the server may require that it resumes the TLS session of the control \
            connection, which is not supported (vsftpd: require_ssl_reuse=NO, proftpd: TLSOptions NoSessionReuseRequired)
            """)
    }

    mutating func endOfTransfer() -> [Action] {
        guard let count else { return [] }
        guard isComplete, failure == nil else { return failure != nil || controlHasEnded ? incomplete() : [] }
        if plan.transfer == .retrieve, !plan.isText, let size = beginning.size, beginning.offset + count < size {
            return fail(.lost, "only \(beginning.offset + count) of \(size) bytes came")
        }
        // Without this check, the transfer would seem complete if a proxy dropped the end of the data and the server took this for
        // the end of the file.
        if plan.transfer.isStore, !plan.isText, let name = plan.name {
            return go(to: .checking, .send(FTPCommand("SIZE", name)))
        }
        return end()
    }

    mutating func dataWasLost() -> [Action] {
        guard plan.security != .none, state == .securingData || state == .awaitingReason, count == nil else {
            return fail(.lost, "the data connection was lost")
        }
        return fail(.lost, "the data connection was lost, or ended without TLS's close_notify")
    }

    mutating func handleControlEnd() -> [Action] {
        controlHasEnded = true
        switch state {
        // Data on the data connection is still delivered, but without the final reply the transfer has not succeeded.
        case .transferring where isComplete: return []
        case .transferring where count == nil: return plan.transfer.isStore ? incomplete() : [.expectEnd]
        case .awaitingReason: return dataWasLost()
        case .transferring: return endOfTransfer()
        case .greeting: return fail(.lost, "the server closed the connection before its greeting")
        default: return fail(.lost, "the server closed the control connection")
        }
    }
}
