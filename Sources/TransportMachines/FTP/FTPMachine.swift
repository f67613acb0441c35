// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// The sequence of an FTP load: which command follows which reply, from the greeting to the end of the transfer (RFC 959, 3659,
/// 4217).
///
/// The machine does no I/O: ``handle(_:)`` returns the actions.
package struct FTPMachine: Sendable {
    enum State: Hashable, Sendable {
        case connecting, greeting, authenticating, securing
        case findingLogin, user, password, protecting, protectingData
        /// Asking for the working directory after the login.
        case home
        case directory(FTPStanding.Step)
        case type, size, time
        case passive(isExtended: Bool)
        case connectingData, restarting
        case beginning
        case securingData
        case transferring
        /// The data connection was lost, and a reply may explain why.
        case awaitingReason
        /// Asking for the size of the stored file.
        case checking
        case over
    }

    let plan: FTPPlan
    var state = State.connecting
    /// What the control connection has agreed on; the next load continues from there if ``isReusable``.
    package private(set) var standing: FTPStanding
    /// Whether the load has left the control connection in a known state.
    package private(set) var isReusable = false
    /// Whether the server has not replied since an earlier load left the control connection.
    private var isUnproven = false
    private var isIPv6 = false
    /// The port of the control connection.
    private var controlPort = 0
    /// The answer to the attempt to establish the data connection, and whether the reply to `MDTM` is outstanding meanwhile.
    private var isConnected: Bool?
    private var awaitsTime = false
    private var hasAskedForTime = false
    /// The server has no such file, according to its reply to `SIZE` or `MDTM`.
    private var isMissing = false
    var beginning = Beginning()
    /// The final reply of the transfer has arrived.
    var isComplete = false
    /// The number of bytes transferred, once the data connection has ended.
    var count: Int64?
    var controlHasEnded = false
    /// Why the transfer is incomplete; data in flight is delivered before the failure is reported.
    var failure: Failure?
    /// The number of preliminary replies since the last command.
    private var preliminaryReplyCount = 0
    private static let maximumPreliminaryReplies = 16
    /// The server refused `REST` before `STOR`, so `APPE` is used instead.
    private var appends = false

    package init(_ plan: FTPPlan) {
        self.plan = plan
        standing = FTPStanding(security: plan.security)
    }

    /// Whether the load has ended.
    package var isOver: Bool { state == .over }
    /// Whether there is a transfer for ABOR to end.
    package var isTransferring: Bool { [.beginning, .securingData, .transferring].contains(state) }

    package mutating func handle(_ event: Event) -> [Action] {
        switch (event, state) {
        case (_, .over): return []
        case (.controlEnded, _): return isUnproven ? go(to: .over, .reconnect) : handleControlEnd()
        case (.opened(let isIPv6, let port, let standing), .connecting):
            self.isIPv6 = isIPv6
            controlPort = port
            if let standing {
                self.standing = standing
                isUnproven = true
                return [.loggedIn] + changeDirectory()
            }
            guard plan.security != .implicit else { return go(to: .securing, .secure) }
            return go(to: .greeting)
        case (.secured, .securing):
            return plan.security == .implicit ? go(to: .greeting) : go(to: .findingLogin, .findLogin(refusal: nil))
        case (.login(let user, let password), .findingLogin):
            (standing.user, standing.password) = (user, password)
            return go(to: .user, .send(FTPCommand("USER", user)))
        case (.connected, .connectingData):
            isConnected = true
            return continueWithData()
        case (.connectionRefused, .connectingData):
            isConnected = false
            return continueWithData()
        case (.dataSecured, .securingData): return begin()
        case (.dataEnded(let count), .transferring):
            self.count = count
            return endOfTransfer()
        case (.dataFailed, .securingData), (.dataFailed, .transferring):
            guard failure == nil else { return incomplete() }
            guard !isComplete, !controlHasEnded else { return dataWasLost() }
            return go(to: .awaitingReason)
        case (.dataFailed, .connectingData), (.dataFailed, .restarting), (.dataFailed, .beginning): return []
        case (.waitTimedOut, .awaitingReason): return dataWasLost()
        case (.waitTimedOut, .transferring) where failure != nil || controlHasEnded && !isComplete: return incomplete()
        case (.replied(let reply), _): return take(reply)
        default: return []
        }
    }

    mutating func go(to state: State, _ actions: Action...) -> [Action] {
        self.state = state
        return actions
    }

    /// Ends the load; the control connection is in the state in which the next load needs it.
    mutating func end(_ actions: Action...) -> [Action] {
        isReusable = true
        state = .over
        return actions + [.end]
    }

    mutating func fail(_ kind: Failure.Kind, _ message: String) -> [Action] {
        // The server has refused a directory or a file, and awaits the next command.
        isReusable = kind == .noSuchFile || kind == .mayNot
        return go(to: .over, .fail(Failure(kind: kind, message: message)))
    }

    // MARK: Replies

    private mutating func take(_ reply: FTPReply) -> [Action] {
        // This reply can arrive at any time: the server closes the connection (RFC 959, section 4.2.2).
        if reply.code == 421 {
            if isUnproven { return go(to: .over, .reconnect) }
            return fail(state == .greeting ? .noConnection : .lost, "the server is closing the connection: \(quote(reply))")
        }
        isUnproven = false
        preliminaryReplyCount = reply.isPreliminary ? preliminaryReplyCount + 1 : 0
        guard preliminaryReplyCount <= Self.maximumPreliminaryReplies else {
            return fail(.malformed, "the server sent too many preliminary replies: \(quote(reply))")
        }
        switch state {
        case .greeting:
            if reply.isPreliminary { return [] }
            if asksForTLS(reply) { return failWithoutTLS(reply) }
            guard reply.isSuccess else { return fail(.noConnection, "the server does not accept connections: \(quote(reply))") }
            guard plan.security == .explicit else { return go(to: .findingLogin, .findLogin(refusal: nil)) }
            return go(to: .authenticating, .send(FTPCommand("AUTH", "TLS")))
        case .authenticating:
            guard reply.code == 234 else { return fail(.notSecure, "the server does not start TLS: \(quote(reply))") }
            return go(to: .securing, .secure)
        case .user, .password: return takeLogin(reply)
        case .protecting:
            guard reply.isSuccess else { return fail(.notSecure, "the server does not protect its data: \(quote(reply))") }
            return go(to: .protectingData, .send(FTPCommand("PROT", "P")))
        case .protectingData:
            guard reply.isSuccess else { return fail(.notSecure, "the server does not protect its data: \(quote(reply))") }
            return findHome()
        case .home:
            if reply.code == 257 { standing.home = reply.directory }
            return changeDirectory()
        case .directory(let step):
            guard reply.isSuccess else { return refused(reply, by: "the directory") }
            standing.directories = step.directories
            return changeDirectory()
        case .type:
            if asksForTLS(reply) { return failWithoutTLS(reply) }
            guard reply.isSuccess else { return fail(.refused, "the server does not accept the transfer type: \(quote(reply))") }
            standing.isText = isText
            return describe()
        case .size:
            if reply.code == 213 { beginning.size = reply.number }
            isMissing = reply.code == 550
            return plan.transfer == .describe ? askForTime() : openData()
        case .time:
            if reply.code == 213 { beginning.modified = reply.time }
            isMissing = isMissing || reply.code == 550
            return described(reply)
        case .connectingData where awaitsTime:
            if reply.code == 213 { beginning.modified = reply.time }
            awaitsTime = false
            return continueWithData()
        case .passive(let isExtended): return takePassive(reply, isExtended: isExtended)
        case .restarting:
            // If the server does not support resuming, the load starts from the beginning.
            if reply.code != 350 {
                if plan.transfer.isStore { appends = true } else { beginning.offset = 0 }
            }
            return transfer()
        case .beginning: return takeBeginning(reply)
        case .securingData, .transferring, .awaitingReason: return takeEnd(reply)
        case .checking:
            // A server that lets files be stored but not read refuses SIZE, so the size cannot be checked.
            if reply.isRefusal, beginning.offset == 0 { return end() }
            guard reply.code == 213, let size = reply.number, size == beginning.offset + (count ?? 0) else {
                return fail(.lost, "the server does not have the whole file: \(quote(reply))")
            }
            return end()
        case .connecting, .securing, .findingLogin, .connectingData, .over:
            return fail(.refused, "the server sent an unexpected reply: \(quote(reply))")
        }
    }

    func quote(_ reply: FTPReply) -> String { reply.message.isEmpty ? "\(reply.code)" : "\(reply.code) \(reply.message)" }

    private mutating func refused(_ reply: FTPReply, by what: String) -> [Action] {
        if asksForTLS(reply) { return failWithoutTLS(reply) }
        if mayRequireSessionReuse(reply) { return failWithoutSessionReuse(reply) }
        let kind: Failure.Kind =
            switch reply.code {
            case 550 where !plan.transfer.isStore: .noSuchFile
            case 532, 550, 553: .mayNot
            case 452, 552: .tooLarge
            case 425, 426, 450, 451: .lost
            case 522, 534, 535, 536: .notSecure
            default: .refused
            }
        return fail(kind, "the server refuses \(what): \(quote(reply))")
    }

    // MARK: Login

    private mutating func takeLogin(_ reply: FTPReply) -> [Action] {
        switch reply.code {
        // Some servers accept a user without a password by 200.
        case 200, 202, 230, 232: return loggedIn()
        case 400...599 where asksForTLS(reply): return failWithoutTLS(reply)
        case 331 where state == .user:
            return go(to: .password, .send(FTPCommand("PASS", standing.password)))
        case 332:
            return fail(.refused, "the server requires an account besides the login, which is not supported: \(quote(reply))")
        case 430, 530, 501, 500...599: return go(to: .findingLogin, .findLogin(refusal: quote(reply)))
        default: return fail(.refused, "the server does not accept the login: \(quote(reply))")
        }
    }

    /// Whether the server refuses a connection without TLS.
    ///
    /// No code says so alone, except those of RFC 2228 and RFC 4217. In a refusal of a file, 550 and 553 may quote its name.
    private func asksForTLS(_ reply: FTPReply) -> Bool {
        guard plan.security == .none, reply.isRefusal else { return false }
        if [522, 534].contains(reply.code) { return true }
        return [State.greeting, .user, .password].contains(state) || reply.code == 530 ? reply.mentionsTLS : false
    }

    private mutating func failWithoutTLS(_ reply: FTPReply) -> [Action] {
        fail(.notSecure, "the server requires TLS: \(quote(reply)); set requiresSecureFTP")
    }

    private mutating func loggedIn() -> [Action] {
        guard plan.security == .none else { return go(to: .protecting, .loggedIn, .send(FTPCommand("PBSZ", "0"))) }
        return [.loggedIn] + findHome()
    }

    // MARK: The file

    /// Asks for the directory to which later loads return; none does from a directory that is the same from anywhere.
    private mutating func findHome() -> [Action] {
        guard let first = plan.directories.first, !FTPStanding.isAbsolute(first) else { return changeDirectory() }
        return go(to: .home, .send(FTPCommand("PWD")))
    }

    private mutating func changeDirectory() -> [Action] {
        if let step = standing.way(to: plan.directories)?.first {
            return go(to: .directory(step), .send(FTPCommand("CWD", step.name)))
        }
        guard standing.isText != isText else { return describe() }
        return go(to: .type, .send(FTPCommand("TYPE", isText ? "A" : "I")))
    }

    /// Listings are text; files are binary, unless the URL says that they are text.
    private var isText: Bool { plan.isText || plan.transfer == .list || plan.transfer == .listNames }

    private mutating func describe() -> [Action] {
        guard let name = plan.name else { return plan.transfer == .describe ? end(.begin(beginning)) : openData() }
        switch plan.transfer {
        case .retrieve where !plan.isText, .describe where !plan.isText, .store(resumes: true):
            return go(to: .size, .send(FTPCommand("SIZE", name)))
        case .describe: return askForTime()
        case .retrieve, .list, .listNames, .store: return openData()
        }
    }

    private mutating func askForTime() -> [Action] { go(to: .time, .send(FTPCommand("MDTM", plan.name ?? []))) }

    /// Ends a load that only describes a file; without a size and a time, nothing shows that the server has the file.
    private mutating func described(_ reply: FTPReply) -> [Action] {
        if beginning.size != nil || beginning.modified != nil { return end(.begin(beginning)) }
        if isMissing { return fail(.noSuchFile, "the server refuses the file: \(quote(reply))") }
        return refused(reply, by: "to describe the file")
    }

    /// Determines where the transfer starts.
    private mutating func findOffset() {
        switch plan.transfer {
        case .retrieve:
            guard let earlier = plan.earlier, let size = beginning.size, let modified = beginning.modified,
                earlier == FTPPlan.Version(size: size, modified: modified), plan.offset <= size
            else { return }
            beginning.offset = plan.offset
        case .store(resumes: true):
            // If the server's file is larger than the one to send, it is another file.
            if let size = beginning.size, size <= plan.length ?? .max { beginning.offset = size }
            beginning.size = nil
        case .list, .listNames, .describe, .store: break
        }
    }

    // MARK: The data connection

    private mutating func openData() -> [Action] {
        go(to: .passive(isExtended: !standing.usesPASV), .send(FTPCommand(standing.usesPASV ? "PASV" : "EPSV")))
    }

    /// Uses `PASV` in place of `EPSV`, once; nil if that is impossible, as over IPv6.
    private mutating func fallBack() -> [Action]? {
        guard !standing.usesPASV, !isIPv6 else { return nil }
        standing.usesPASV = true
        return openData()
    }

    private mutating func takePassive(_ reply: FTPReply, isExtended: Bool) -> [Action] {
        let isRight = reply.code == (isExtended ? 229 : 227)
        // On the control port, the greeting would be taken for the file.
        guard isRight, let port = isExtended ? reply.extendedPassivePort : reply.passivePort, port != controlPort else {
            if !reply.isPreliminary, let fallback = fallBack() { return fallback }
            guard isRight else { return refused(reply, by: "a data connection") }
            return fail(.refused, "the server's reply has no usable port for the data connection: \(quote(reply))")
        }
        isConnected = nil
        // The address in a PASV reply is ignored: it may be that of any host (CVE-2020-8284).
        guard plan.transfer == .retrieve, let name = plan.name, !hasAskedForTime else {
            return go(to: .connectingData, .connect(port))
        }
        // The reply arrives while the data connection is being established, so that the time costs no wait of its own.
        (hasAskedForTime, awaitsTime) = (true, true)
        return go(to: .connectingData, .send(FTPCommand("MDTM", name)), .connect(port))
    }

    private mutating func continueWithData() -> [Action] {
        guard let isConnected, !awaitsTime else { return [] }
        if isConnected { return dataConnectionIsReady() }
        return fallBack() ?? fail(.noConnection, "the server refuses the data connection")
    }

    private mutating func dataConnectionIsReady() -> [Action] {
        findOffset()
        guard beginning.offset > 0 else { return transfer() }
        // REST must directly precede the transfer command (RFC 3659, section 5.3).
        return go(to: .restarting, .send(FTPCommand("REST", "\(beginning.offset)")))
    }

    private mutating func transfer() -> [Action] {
        let name = plan.name ?? []
        switch plan.transfer {
        case .describe: return end(.begin(beginning))
        case .retrieve: return go(to: .beginning, .send(FTPCommand("RETR", name)))
        case .list: return go(to: .beginning, .send(FTPCommand("LIST")))
        case .listNames: return go(to: .beginning, .send(FTPCommand("NLST")))
        case .store: return go(to: .beginning, .send(FTPCommand(appends ? "APPE" : "STOR", name)))
        }
    }

    private mutating func takeBeginning(_ reply: FTPReply) -> [Action] {
        if reply.isRefusal {
            // Some servers refuse the listing of an empty directory.
            return refused(reply, by: plan.name == nil ? "the listing" : "the file")
        }
        guard reply.isPreliminary || reply.code == 226 || reply.code == 250 else {
            return fail(.refused, "the server did not start the transfer: \(quote(reply))")
        }
        isComplete = !reply.isPreliminary
        guard plan.security == .none else { return go(to: .securingData, .secureData) }
        return begin()
    }

    private mutating func begin() -> [Action] { go(to: .transferring, .begin(beginning)) }
}
