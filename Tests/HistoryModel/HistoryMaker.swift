// SPDX-License-Identifier: Apache-2.0

import SeededNumbers

/// Generates a history from a seed.
package struct HistoryMaker {
    /// What histories may contain; everything by default.
    package struct Extent: Sendable {
        package var workers = 2
        package var hasBackground = true

        package init() {}
    }

    private struct KnownSession {
        var worker: Int
        var kind: SessionKind
        /// Whether the session was invalidated, or its worker was killed.
        var isOver = false
    }

    private var random: SeededNumbers
    private let extent: Extent
    private var sessions: [Int: KnownSession] = [:]
    private var count = 0
    /// Recently used pages, which later steps prefer.
    private var recent: [(Origin, Page)] = []

    package static func history(seed: UInt64, steps: Int, extent: Extent = Extent()) -> [HistoryStep] {
        var maker = HistoryMaker(random: SeededNumbers(seed: seed), extent: extent)
        return (0..<steps).map { _ in maker.step() }
    }

    private init(random: SeededNumbers, extent: Extent) {
        self.random = random
        self.extent = extent
    }

    private mutating func any<Element>(_ values: [Element]) -> Element { values[random.next(below: values.count)] }
    private mutating func isOne(of count: Int) -> Bool { random.next(below: count) == 0 }

    private var live: [Int] { sessions.filter { !$0.value.isOver }.keys.sorted() }

    private mutating func step() -> HistoryStep {
        if live.count < 2 { return makeSession() }
        switch random.next(below: 100) {
        case 0..<9: return makeSession()
        case 9..<12: return invalidate()
        case 12..<39: return .load(load())
        case 39..<44 where extent.hasBackground: return .inBackground(backgroundStep())
        case 44..<49: return transfer()
        case 49..<53: return upload()
        case 53..<58: return .tool(tool())
        case 58..<62: return .together((0..<(2 + random.next(below: 3))).map { _ in load() })
        case 62..<69:
            let (origin, page) = target()
            return .deploy(origin, page)
        case 69..<74: return .certificate(isOne(of: 2) ? .valid : any([.unknown, .unknown, .expired]))
        case 74..<80: return interrupted()
        case 80..<83: return kill()
        case 83..<85: return .line(worker: random.next(below: extent.workers))
        case 85..<90: return post()
        case 90..<93: return cutDownload()
        case 93..<95: return .byProtocol(worker: random.next(below: extent.workers), stores: isOne(of: 2))
        case 95..<98 where extent.hasBackground:
            var load = plainLoad()
            load.policy = .usual
            return .orderInBackground(worker: random.next(below: extent.workers), load, uploads: isOne(of: 3))
        case 98..<100 where extent.hasBackground: return .killDaemon
        default: return .load(load())
        }
    }

    // MARK: Sessions

    private mutating func makeSession() -> HistoryStep {
        var kind = SessionKind()
        kind.stores = any([.shared, .shared, .shared, .shared, .ephemeral, .withoutCache])
        kind.trust = any([.system, .system, .system, .ownRoots, .delegate])
        kind.isSubstituted = isOne(of: 8)
        if isOne(of: 5) { kind.principal = any([.ali, .bob]) }
        kind.requiresSecureFTP = isOne(of: 3)
        kind.hasDelegate = kind.trust == .delegate || !isOne(of: 3)
        kind.connections = isOne(of: 4) ? 1 : 6
        kind.retries = isOne(of: 4)
        count += 1
        let worker = random.next(below: extent.workers)
        sessions[count] = KnownSession(worker: worker, kind: kind)
        return .makeSession(count, worker: worker, kind)
    }

    private mutating func invalidate() -> HistoryStep {
        let session = any(live)
        sessions[session]?.isOver = true
        return .invalidate(session, finishes: isOne(of: 2))
    }

    private mutating func kill() -> HistoryStep {
        let worker = random.next(below: extent.workers)
        forget(worker)
        return .kill(worker: worker)
    }

    private mutating func forget(_ worker: Int) {
        for (session, known) in sessions where known.worker == worker { sessions[session]?.isOver = true }
    }

    // MARK: Loads

    private mutating func target() -> (Origin, Page) {
        if let last = recent.last, isOne(of: 3) { return last }
        if !recent.isEmpty, isOne(of: 2) { return any(recent) }
        return (any([.clear, .secure, .secure]), any(Page.ordinary))
    }

    private mutating func plainLoad() -> LoadStep {
        let (origin, page) = target()
        recent = recent.suffix(5) + [(origin, page)]
        var load = LoadStep(session: any(live), origin: origin, page: page)
        load.policy = any([.usual, .usual, .usual, .usual, .reload, .reloadAll, .elseLoad, .dontLoad, .revalidate])
        if page == .varyField || isOne(of: 10) { load.field = any(["blue", "red"]) }
        return load
    }

    private mutating func load() -> LoadStep {
        var load = plainLoad()
        let kind = sessions[load.session]?.kind ?? SessionKind()
        load.way = any([
            .data, .data, .completion, .delegate, .delegate, .download, .webSocket, .webSocket, .becomesStream, .stream,
        ])
        if load.way == .delegate, !kind.hasDelegate { load.way = .completion }
        if load.way == .becomesStream, !kind.hasDelegate { load.way = .webSocket }
        // These loads always need the server.
        if load.way.switchesProtocols || load.way == .stream, load.policy == .dontLoad { load.policy = .usual }
        let wantsPrincipal = load.page.isGuarded ? !isOne(of: 5) : isOne(of: 3)
        if wantsPrincipal {
            load.principal = any([.ali, .ali, .bob, .bob, .mallory])
            let fields: [Proof] = [.basicField, .bearerField]
            load.proof = any(kind.principal == .anonymous ? fields + [.userInfo, .challenge, .challengeForSession] : fields)
            if !kind.hasDelegate, load.proof == .challenge || load.proof == .challengeForSession { load.proof = .userInfo }
        }
        if load.page == .varyCookie, !isOne(of: 3) { load.login = any([.ali, .bob, .anonymous]) }
        if load.way == .stream { makeStream(&load) }
        let mayHaveOwnTrust = !kind.hasDelegate && [.data, .webSocket, .stream].contains(load.way)
        if mayHaveOwnTrust, load.origin == .secure, isOne(of: 5) { load.hasOwnTrust = true }
        if isOne(of: 6) {
            load.isByName = true
            let isTrustedForAll = kind.trust == .system && !kind.isSubstituted
            if load.origin == .secure, !isTrustedForAll, load.page != .away { load.page = .strict }
        }
        return load
    }

    private mutating func makeStream(_ load: inout LoadStep) {
        // The app that uses the stream sends no credential, and follows no redirect.
        (load.principal, load.proof) = (.anonymous, .none)
        if load.page == .away { load.page = .open }
        load.startsInClear = isOne(of: 2)
    }

    // MARK: FTP

    private mutating func fileLoad() -> LoadStep {
        var load = plainLoad()
        let kind = sessions[load.session]?.kind ?? SessionKind()
        (load.service, load.policy, load.field) = (.ftp, .usual, nil)
        if load.page == .away { load.page = .open }
        load.way = any([.data, .completion, .delegate, .download])
        if load.way == .delegate, !kind.hasDelegate { load.way = .completion }
        // Sometimes the session requires TLS from a server without TLS; the load then fails.
        if kind.requiresSecureFTP { load.origin = isOne(of: 4) ? .clear : .secure }
        load.startsInClear = load.origin == .secure && kind.requiresSecureFTP && !isOne(of: 3)
        if load.page.isGuarded ? !isOne(of: 4) : isOne(of: 3) {
            load.principal = any([.ali, .ali, .bob, .bob, .mallory])
            load.proof = kind.hasDelegate ? any([.userInfo, .challenge, .challengeForSession]) : .userInfo
        }
        if !kind.hasDelegate, load.way == .data, load.origin == .secure, isOne(of: 5) { load.hasOwnTrust = true }
        load.isByName = isOne(of: 6)
        return load
    }

    /// An FTP load, upload or download, possibly interrupted or cut off.
    private mutating func transfer() -> HistoryStep {
        var load = fileLoad()
        switch random.next(below: 10) {
        case 0..<5: return .load(load)
        case 5..<7:
            load.page = .send
            if load.way == .download { load.way = .data }
            return .post(load, nil)
        case 7..<9:
            (load.page, load.way, load.hasOwnTrust) = (.long, .download, false)
            return .cutDownload(
                load, deploys: isOne(of: 3), shows: isOne(of: 3) ? any(Identity.allCases) : nil,
                resumesIn: isOne(of: 2) ? load.session : any(live))
        default: return interruption(of: load)
        }
    }

    private mutating func interrupted() -> HistoryStep {
        var load = load()
        if load.page == .away { load.page = .open }
        load.policy = .reload
        return interruption(of: load)
    }

    private mutating func interruption(of load: LoadStep) -> HistoryStep {
        let interruption = any(Interruption.allCases)
        if interruption == .kill || interruption == .killWhileSending, let worker = sessions[load.session]?.worker {
            forget(worker)
        }
        if interruption == .invalidate { sessions[load.session]?.isOver = true }
        return .interrupted(load, interruption)
    }

    private mutating func tool() -> ToolStep {
        let (origin, page) = target()
        recent = recent.suffix(5) + [(origin, page)]
        var load = LoadStep(session: 0, origin: origin, page: page)
        if page == .varyField { load.field = any(["blue", "red"]) }
        if page.isGuarded ? !isOne(of: 4) : isOne(of: 3) {
            load.principal = any([.ali, .ali, .bob, .mallory])
            load.proof = any([.challenge, .challenge, .userInfo, .basicField, .bearerField])
        }
        if page == .varyCookie, isOne(of: 2) { load.login = any([.ali, .bob, .anonymous]) }
        var step = ToolStep(load)
        step.isInsecure = isOne(of: 4)
        step.isSubstituted = isOne(of: 8)
        step.isCached = isOne(of: 2)
        step.load.policy = step.isCached ? .usual : .revalidate
        return step
    }

    private mutating func post() -> HistoryStep {
        var load = load()
        load.page = .send
        load.login = nil
        load.policy = .usual
        if load.way == .download || load.way == .stream || load.way.switchesProtocols { load.way = .data }
        if load.proof != .none { load.proof = .basicField }
        return .post(load, isOne(of: 3) ? nil : any(HistoryStep.Failure.allCases))
    }

    private mutating func upload() -> HistoryStep {
        var load = load()
        (load.page, load.login, load.policy, load.hasOwnTrust, load.startsInClear) = (.send, nil, .usual, false, false)
        if ![.data, .completion, .delegate].contains(load.way) { load.way = .completion }
        if load.proof != .none { load.proof = any([.basicField, .bearerField]) }
        return .upload(load, uploadPlan(resumable: live))
    }

    private mutating func uploadPlan(resumable: [Int]) -> UploadPlan {
        let length = any([1, 20_000, 300_000, 1_500_000])
        let cuts = (0..<random.next(below: 4)).map { _ in random.next(below: length + 1) }.sorted()
        var plan = UploadPlan(version: any([3, 5, 6, 8, 8, 8]), length: length, cuts: cuts)
        plan.losesAnswer = isOne(of: 5)
        if isOne(of: 3) {
            plan.stop = random.next(below: length + 1)
            plan.resumesIn = any(resumable)
        }
        return plan
    }

    private mutating func backgroundStep() -> BackgroundStep {
        var (transfer, data) = (plainLoad(), plainLoad())
        (transfer.policy, data.policy, data.way) = (.usual, .usual, .delegate)
        if data.page.isGuarded ? !isOne(of: 5) : isOne(of: 3) {
            data.principal = any([.ali, .ali, .bob, .bob, .mallory])
            data.proof = any([.basicField, .bearerField, .userInfo, .challenge, .challengeForSession])
        }
        var step = BackgroundStep(
            worker: random.next(below: extent.workers), transfer: transfer, data: data, event: any(BackgroundStep.Event.allCases))
        step.uploads = isOne(of: 3)
        step.posts = isOne(of: 3)
        if step.posts {
            step.data.page = .send
            if data.proof != .none { step.data.proof = .basicField }
        }
        if step.event == .killWorker || step.event == .killBoth { forget(step.worker) }
        return step
    }

    private mutating func cutDownload() -> HistoryStep {
        var load = load()
        load.page = .long
        load.login = nil
        load.way = .download
        load.startsInClear = false
        load.policy = .usual
        load.hasOwnTrust = false
        return .cutDownload(
            load, deploys: isOne(of: 3), shows: isOne(of: 3) ? any(Identity.allCases) : nil,
            resumesIn: isOne(of: 2) ? load.session : any(live))
    }
}
