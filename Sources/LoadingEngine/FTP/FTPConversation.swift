//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingStores
import NIOCore
import TransportMachines

/// The two connections of an FTP load, and the dialogue on the control connection.
///
/// ``FTPMachine`` decides the order of the steps. Confined to the session's event loop.
final class FTPConversation {
    /// How long to wait for a reply that may explain why the data connection was lost.
    private static let replyTimeout = TimeAmount.seconds(2)
    /// How long to wait for the server to close the control connection.
    private static let closeTimeout = TimeAmount.seconds(2)
    /// The maximum size of a delivered piece.
    private static let pieceSize = 262_144

    private let load: Load
    private let pool: ConnectionPool
    private let target: FTPTarget
    private let plan: FTPPlan
    private var machine: FTPMachine
    private var reader = FTPReplyReader()
    private var login: FTPLogin
    private var actions = CircularBuffer<FTPMachine.Action>()
    private var control: ByteStreamConnection?
    private var data: ByteStreamConnection?
    private var beginning: FTPMachine.Beginning?
    /// The number of bytes transferred on the data connection.
    private var count: Int64 = 0
    /// Whether the machine has been notified of the end of the control connection, and of the data connection.
    private var hasReportedEnd = false
    private var hasReportedDataEnd = false
    private var dataFailure: LoadError?
    private var timer: Scheduled<Void>?
    private var replyIsLate = false
    /// Whether a reply was not valid FTP.
    private var hasInvalidReply = false
    private var isClosed = false

    init(_ plan: FTPPlan, with target: FTPTarget, by pool: ConnectionPool, in load: Load) {
        self.load = load
        self.pool = pool
        self.target = target
        self.plan = plan
        machine = FTPMachine(plan)
        login = FTPLogin(to: target, in: load)
    }

    /// Runs the dialogue until the transfer begins.
    func begin() async throws(LoadError) -> FTPMachine.Beginning {
        try await connect()
        while true {
            if let beginning {
                try await load.control.waitWhileSuspended()
                return beginning
            }
            if try await !advance() { await load.control.wait() }
        }
    }

    // MARK: The machine

    private func tell(_ event: FTPMachine.Event) { actions.append(contentsOf: machine.handle(event)) }

    /// Performs the next action, or processes the next reply; returns false if there is neither.
    private func advance() async throws(LoadError) -> Bool {
        try load.control.check()
        if let action = actions.popFirst() {
            try await perform(action)
            return true
        }
        return try takeReply()
    }

    private func perform(_ action: FTPMachine.Action) async throws(LoadError) {
        switch action {
        case .send(let command): control?.write(ByteBuffer(bytes: command.line)) { _ in }
        case .secure: try await secureControl()
        case .findLogin(let refusal):
            let (user, password) = try await login.next(after: refusal, in: load)
            // The server may have closed the connection while the app was being asked.
            if refusal != nil, control?.isGone != false {
                control?.close()
                machine = FTPMachine(plan)
                return try await connect()
            }
            tell(.login(user: user, password: password))
        case .loggedIn:
            login.accepted(in: load)
            load.transaction?.sent = SentFields(HeaderBlock(), credential: login.sentCredential)
        case .connect(let port):
            load.transaction?.asked = .now()
            do throws(LoadError) {
                data = try await connectData(to: port)
                dataFailure = nil
                tell(.connected)
            } catch {
                guard error.kind == .cannotConnectToHost, !error.isProxyError else { throw error }
                dataFailure = error
                tell(.connectionRefused)
            }
        case .secureData: try await secureData()
        case .begin(let beginning):
            load.transaction?.began = .now()
            self.beginning = beginning
        case .expectEnd: giveUp(after: Self.replyTimeout, at: count)
        case .end: break
        case .fail(let failure): throw error(failure)
        }
    }

    private func takeReply() throws(LoadError) -> Bool {
        guard let control else { return false }
        if control.readableBytes > 0 {
            reader.append(control.take(.max).readableBytesView)
            control.read(upTo: 0, isHeld: false)
        }
        let reply: FTPReply?
        do {
            reply = try reader.next()
        } catch {
            throw LoadError(.cannotParseResponse, error.message)
        }
        if let reply {
            load.control.markProgress(.now())
            tell(.replied(reply))
        } else if control.hasEnded || control.failure != nil, !hasReportedEnd {
            hasReportedEnd = true
            tell(.controlEnded)
        } else if replyIsLate {
            replyIsLate = false
            tell(.waitTimedOut)
        } else {
            return false
        }
        return true
    }

    private func error(_ failure: FTPMachine.Failure) -> LoadError {
        let kind: LoadError.Kind =
            switch failure.kind {
            case .noSuchFile: .fileDoesNotExist
            case .mayNot: .noPermissionsToReadFile
            case .tooLarge: .dataLengthExceedsMaximum
            case .notSecure: .secureConnectionFailed
            case .noConnection: .cannotConnectToHost
            case .lost: .connectionLost
            case .malformed: .cannotParseResponse
            case .refused: .badServerResponse
            }
        hasInvalidReply = failure.kind == .malformed
        if failure.kind == .lost || failure.kind == .noConnection, let dataFailure { return dataFailure }
        return LoadError(kind, failure.message)
    }

    // MARK: Connections

    private var server: ServerName { ServerName(host: target.origin.host, port: target.origin.port) }

    private func connect() async throws(LoadError) {
        let control = try await connecting(to: target.origin.port, use: .counted).connect(in: load)
        self.control = control
        reader = FTPReplyReader()
        hasReportedEnd = false
        load.transaction?.connection = control.facts
        watch(control)
        let isIPv6 = !control.facts.isToProxy && control.facts.remoteAddress?.contains(":") == true
        tell(.opened(isIPv6: isIPv6, port: destination.port))
    }

    /// Where the control connection leads: the URL's server, or its substitute in the session's configuration.
    private var destination: (host: String, port: Int) {
        let (host, port) = (target.origin.host, target.origin.port)
        return load.session.policy.connections?.destination(host: host, port: port) ?? (host, port)
    }

    private func connectData(to port: Int) async throws(LoadError) -> ByteStreamConnection {
        do throws(LoadError) {
            var connecting = try connecting(to: port, use: .fresh)
            // The data connection leads to the control connection's peer, because several servers may share a host name. What the
            // session's configuration substitutes for a host or a port has been substituted for the control connection. A proxy
            // resolves the host name itself.
            connecting.exactHost = destination.host
            if let facts = control?.facts, !facts.isToProxy {
                guard let address = facts.remoteAddress, facts.remotePort != nil else {
                    throw LoadError(.cannotConnectToHost, "a Unix socket has no port for it")
                }
                connecting.addresses = [address]
            } else {
                let connections = load.session.policy.connections
                connecting.addresses = connections?.configuredAddresses(host: destination.host, port: destination.port) ?? []
            }
            let connection = try await connecting.connect(in: load)
            watch(connection)
            return connection
        } catch {
            var error = error
            error.message = "the data connection: " + error.message
            throw error
        }
    }

    private func connecting(to port: Int, use: StreamConnecting.Use) throws(LoadError) -> StreamConnecting {
        let (target, url) = try StreamOrder(host: target.origin.host, port: port).target()
        let needs = load.order.request.needs.joined(with: load.session.policy.needs)
        return StreamConnecting(
            target: target, url: url, pool: pool, use: use, needs: needs == load.session.policy.needs ? nil : needs)
    }

    private func watch(_ connection: ByteStreamConnection) {
        let bound = NIOLoopBound(load, eventLoop: load.session.loop)
        connection.takeOver { bound.value.control.wake() }
    }

    private func secureControl() async throws(LoadError) {
        guard let control else { return }
        guard reader.isEmpty, control.readableBytes == 0 else { throw StreamLoad.error(.unreadBytes) }
        try await control.secure(to: server, in: load)
        load.transaction?.connection = control.facts
        tell(.secured)
    }

    private func secureData() async throws(LoadError) {
        guard let data else { return }
        guard data.readableBytes == 0 else {
            throw LoadError(.secureConnectionFailed, "the server sent data in clear text, although it had agreed to use TLS")
        }
        do throws(LoadError) {
            try await data.secure(to: server, in: load)
            tell(.dataSecured)
        } catch {
            try load.control.check()
            guard error.kind == .secureConnectionFailed || error.kind == .connectionLost else { throw error }
            dataWasLost(error)
        }
    }

    /// Handles the loss of the data connection.
    ///
    /// A reply may still explain the loss.
    private func dataWasLost(_ error: LoadError?) {
        dataFailure = error
        hasReportedDataEnd = true
        giveUp(after: Self.replyTimeout)
        tell(.dataFailed)
    }

    /// Tells the machine, after `patience`, that no more data and no reply will come, unless more data arrive first.
    private func giveUp(after patience: TimeAmount, at count: Int64? = nil) {
        timer?.cancel()
        let bound = NIOLoopBound((conversation: self, control: load.control), eventLoop: load.session.loop)
        timer = load.session.loop.scheduleTask(in: patience) {
            let (conversation, control) = bound.value
            let isHeld = control.isSuspended || conversation.data?.readableBytes ?? 0 > 0
            if let count, isHeld || conversation.count > count {
                return conversation.giveUp(after: patience, at: conversation.count)
            }
            conversation.replyIsLate = true
            control.wake()
        }
    }

    // MARK: Data

    /// Returns the next piece of the retrieved file, or nil when the whole file has arrived and the server has confirmed the
    /// transfer.
    func next() async throws(LoadError) -> ByteBuffer? {
        while !machine.isOver || !actions.isEmpty {
            if let data, !load.control.isSuspended, data.readableBytes > 0 {
                try load.control.check()
                let piece = data.take(Self.pieceSize)
                count += Int64(piece.readableBytes)
                load.control.markProgress(.now())
                return piece
            }
            checkData()
            if try await !advance() {
                data?.read(upTo: 0, isHeld: load.control.isSuspended)
                if data.map({ $0.readableBytes == 0 || load.control.isSuspended }) ?? true { await load.control.wait() }
            }
        }
        return nil
    }

    private func checkData() {
        guard let data, !hasReportedDataEnd, data.readableBytes == 0 else { return }
        if data.hasEnded, data.failure == nil {
            hasReportedDataEnd = true
            // Some servers confirm the transfer only after the client has closed its side of the data connection.
            data.close()
            tell(.dataEnded(count))
        } else if data.failure != nil {
            dataWasLost(nil)
        }
    }

    /// Sends the body from an offset, and waits until the server has stored it.
    func store(_ body: OutgoingBody, from offset: Int64) async throws(LoadError) {
        let pieces = UploadPieces(body, from: offset, in: load)
        defer { pieces.close() }
        while let piece = try await pieces.next() {
            try await load.control.waitWhileSuspended()
            let size = Int64(piece.readableBytes)
            try await write(piece)
            count += size
            load.transaction?.sentBytes = count
            load.control.markProgress(.now())
            if load.wants(.sentBytes) { load.tellSent(size, total: count) }
        }
        try await pieces.check()
        var isEnded = false
        data?.closeOutput { [control = load.control] in
            isEnded = true
            control.wake()
        }
        while !isEnded { if try await !advance() { await load.control.wait() } }
        if !hasReportedDataEnd {
            hasReportedDataEnd = true
            tell(.dataEnded(count))
        }
        while !machine.isOver || !actions.isEmpty { if try await !advance() { await load.control.wait() } }
    }

    private func write(_ piece: ByteBuffer) async throws(LoadError) {
        var isTaken: Bool?
        data?.write(piece) { [control = load.control] in
            isTaken = $0
            control.wake()
        }
        while isTaken == nil { if try await !advance() { await load.control.wait() } }
        guard isTaken == false else { return }
        // If a reply of the server explains the loss, that reply's error is thrown here instead of the error below.
        if !hasReportedDataEnd { dataWasLost(nil) }
        while !machine.isOver || !actions.isEmpty { if try await !advance() { await load.control.wait() } }
        throw LoadError(.connectionLost, "the data connection was lost")
    }

    // MARK: Closing

    /// Closes both connections.
    ///
    /// Aborts a running transfer first.
    ///
    /// Repeated calls have no effect.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        timer?.cancel()
        actions.removeAll()
        guard let control else { return }
        let isBroken = load.control.failure == nil && (!machine.isOver || hasInvalidReply)
        let commands = machine.isTransferring ? [FTPCommand.abort, .quit] : [.quit]
        if control.channelIsActive, !control.isSecuring, !isBroken {
            for command in commands { control.write(ByteBuffer(bytes: command.line)) { _ in } }
            control.linger(Self.closeTimeout)
        } else {
            control.close()
        }
        data?.close()
    }
}
