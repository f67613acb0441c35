// SPDX-License-Identifier: Apache-2.0

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
    /// How long a control connection stays idle; servers close them after minutes.
    private static let idleTime = TimeAmount.seconds(30)
    /// How long to wait for the server to close the control connection.
    private static let closeTimeout = TimeAmount.seconds(2)
    /// The maximum size of a delivered piece.
    static let pieceSize = 262_144

    let load: Load
    private let pool: ConnectionPool
    /// Owns the control connections of the session's FTP loads.
    private let holder: ConnectionHolder
    private let target: FTPTarget
    private let plan: FTPPlan
    var machine: FTPMachine
    private var reader = FTPReplyReader()
    private var login: FTPLogin
    var actions = CircularBuffer<FTPMachine.Action>()
    private var control: ByteStreamConnection?
    var data: ByteStreamConnection?
    private var beginning: FTPMachine.Beginning?
    /// The number of bytes transferred on the data connection.
    var count: Int64 = 0
    /// Whether the machine has been notified of the end of the control connection, and of the data connection.
    private var hasReportedEnd = false
    var hasReportedDataEnd = false
    private var dataFailure: LoadError?
    private var timer: Scheduled<Void>?
    private var replyIsLate = false
    /// Whether a reply was not valid FTP.
    private var hasInvalidReply = false
    private var isClosed = false

    init(_ plan: FTPPlan, with target: FTPTarget, by pool: ConnectionPool, _ holder: ConnectionHolder, in load: Load) {
        self.load = load
        self.holder = holder
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

    func tell(_ event: FTPMachine.Event) { actions.append(contentsOf: machine.handle(event)) }

    /// Performs the next action, or processes the next reply; returns false if there is neither.
    func advance() async throws(LoadError) -> Bool {
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
                return try await reconnect()
            }
            tell(.login(user: user, password: password))
        case .loggedIn:
            login.accepted(in: load)
            load.transaction?.sent = SentFields(HeaderBlock(), credential: login.sentCredential)
        case .reconnect: try await reconnect()
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

    private func connect(onlyNew: Bool = false) async throws(LoadError) {
        var connecting = try connecting(to: target.origin.port)
        (connecting.use, connecting.holder, connecting.onlyNew) = (.counted, holder, onlyNew)
        let control = try await connecting.connect(in: load)
        self.control = control
        reader = FTPReplyReader()
        hasReportedEnd = false
        let kept = watch(control) as? Kept
        if let kept, try await !mayContinue(from: kept) {
            dismiss(control)
            return try await connect(onlyNew: true)
        }
        load.transaction?.connection = control.facts
        load.transaction?.connectionIsReused = kept != nil
        let isIPv6 = !control.facts.isToProxy && control.facts.remoteAddress?.contains(":") == true
        tell(.opened(isIPv6: isIPv6, port: destination.port, continuing: kept?.standing))
    }

    private func reconnect() async throws(LoadError) {
        control?.close()
        machine = FTPMachine(plan)
        try await connect(onlyNew: true)
    }

    /// What the load leaves with an idle control connection.
    private struct Kept {
        let standing: FTPStanding
        /// Whose delegate judged the server.
        let judge: ConnectionHolder?
    }

    private var judge: ConnectionHolder? { control?.facts.isInTLS == true ? load.order.connectionHolder : nil }

    /// Whether the load may continue where another load has left the control connection: with the same login and the same trust.
    private func mayContinue(from kept: Kept) async throws(LoadError) -> Bool {
        guard kept.judge == judge else { return false }
        let (user, password) = try await login.next(after: nil, in: load)
        return kept.standing.serves(plan, user: user, password: password)
    }

    /// Where the control connection leads: the URL's server, or its substitute in the session's configuration.
    private var destination: (host: String, port: Int) {
        let (host, port) = (target.origin.host, target.origin.port)
        return load.session.policy.connections?.destination(host: host, port: port) ?? (host, port)
    }

    private func connectData(to port: Int) async throws(LoadError) -> ByteStreamConnection {
        do throws(LoadError) {
            var connecting = try connecting(to: port)
            connecting.onlyNew = true
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

    private func connecting(to port: Int) throws(LoadError) -> StreamConnecting {
        let (target, url) = try StreamOrder(host: target.origin.host, port: port).target()
        let needs = load.order.request.needs.joined(with: load.session.policy.needs)
        return StreamConnecting(
            target: target, url: url, pool: pool, needs: needs == load.session.policy.needs ? nil : needs)
    }

    @discardableResult
    private func watch(_ connection: ByteStreamConnection) -> Any? {
        let bound = NIOLoopBound(load, eventLoop: load.session.loop)
        return connection.takeOver { bound.value.control.wake() }
    }

    private func secureControl() async throws(LoadError) {
        guard let control else { return }
        guard reader.isEmpty, control.readableBytes == 0 else { throw StreamMachine.Failure.unreadBytes.loadError }
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
    func dataWasLost(_ error: LoadError?) {
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

    // MARK: Closing

    /// Closes the data connection, and leaves the control connection to the next load, or closes it, too.
    ///
    /// Aborts a running transfer first.
    ///
    /// Repeated calls have no effect.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        timer?.cancel()
        actions.removeAll()
        defer { data?.close() }
        guard let control else { return }
        if machine.isReusable, !control.isGone, reader.isEmpty, control.readableBytes == 0 {
            return control.leave(keeping: Kept(standing: machine.standing, judge: judge), for: Self.idleTime)
        }
        let isBroken = load.control.failure == nil && (!machine.isOver || hasInvalidReply)
        if isBroken || control.isSecuring { return control.close() }
        dismiss(control, after: machine.isTransferring ? [.abort] : [])
    }

    private func dismiss(_ control: ByteStreamConnection, after commands: [FTPCommand] = []) {
        guard control.channelIsActive else { return control.close() }
        for command in commands + [.quit] { control.write(ByteBuffer(bytes: command.line)) { _ in } }
        control.linger(Self.closeTimeout)
    }
}
