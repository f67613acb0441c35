// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading

/// `--segments`: downloads a file over several connections, each of which loads a part.
///
/// All parts must be of one version: each request has the same strong entity tag, and its response must have that tag, exactly the
/// requested range, and the same complete length (RFC 9110, sections 13.1.5 and 14.4). If a server does not comply, the file is
/// loaded without segments.
final class SegmentedDownload: Sendable {
    enum Ending {
        case done(TransferObserver.State)
        /// The file must be loaded over one connection, for this reason.
        case refused(String)
    }

    /// The facts about the file from the first response.
    private struct File: Sendable {
        let length: Int64
        let tag: String
        let response: HTTPURLResponse
    }

    /// The minimum length of a part that is worth a connection.
    private static let minimumPartLength: Int64 = 65_536

    private let prepared: PreparedLoad
    private let request: URLRequest
    private let plan: TransferObserver.Plan
    private let path: String
    private let tasks = Mutex<(all: [URLSessionTask], isOver: Bool)>(([], false))
    private let received = Mutex<Int64>(0)

    /// - Parameters:
    ///   - prepared: The load's URL and configuration.
    ///   - request: The request for each part, without the range.
    ///   - plan: The relevant options; its meter shows the progress of all parts.
    ///   - path: The temporary file to write, which the caller moves to the destination.
    init(_ prepared: PreparedLoad, _ request: URLRequest, _ plan: TransferObserver.Plan, to path: String) {
        self.prepared = prepared
        self.plan = plan
        self.path = path
        var request = request
        request.cachePolicy = .reloadIgnoringLocalCacheData
        self.request = request
        // Ranges apply to the file without content coding.
        prepared.configuration.omittedHeaders.insert("accept-encoding")
    }

    /// Cancels all parts.
    func cancel() {
        let all = tasks.withLock { tasks in
            tasks.isOver = true
            return tasks.all
        }
        for task in all { task.cancel() }
    }

    /// - Parameters:
    ///   - count: The number of parts; it is limited by the connections per host and by the minimum length of a part.
    ///   - judge: Throws if a load failed.
    /// - Throws: The errors of `judge`, or an error if the file cannot be written.
    /// - Returns: The result; after a refusal, no part of the file remains.
    func load(_ count: Int, judge: (TransferObserver.State) throws -> Void) async throws -> Ending {
        let file: File
        switch await probe() {
        case .success(let found): file = found
        case .failure(let refusal):
            if let outcome = refusal.outcome { try judge(outcome) }
            return .refused(refusal.reason)
        }
        if let most = plan.maximumSize, file.length > most {
            throw ToolFailure(63, "the body has more than \(most) bytes (--max-filesize)")
        }
        let count = min(
            count, prepared.configuration.httpMaximumConnectionsPerHost,
            Int(clamping: max(1, file.length / Self.minimumPartLength)))
        try create(file.length)
        let step = (file.length - 1) / Int64(count) + 1
        var outcomes: [(part: Range<Int64>, outcome: TransferObserver.State)] = []
        await withTaskGroup(of: (Range<Int64>, TransferObserver.State).self) { group in
            for start in stride(from: 0, to: file.length, by: Int(step)) {
                let part = start..<(file.length - start > step ? start + step : file.length)
                group.addTask { (part, await self.load(part, of: file, share: count)) }
            }
            for await (part, outcome) in group {
                // If one part fails, the others are useless.
                if outcome.error != nil || outcome.failure != nil { cancel() }
                outcomes.append((part, outcome))
            }
        }
        plan.meter?.finish()
        if let change = outcomes.compactMap(\.outcome.failure).first(where: { $0.code == Self.changed }) {
            unlink(path)
            return .refused(change.message ?? "")
        }
        // The failure that caused the other parts to be cancelled.
        let cause =
            outcomes.first { $0.outcome.failure != nil } ?? outcomes.first { ($0.outcome.error as? URLError)?.code != .cancelled }
        for (_, outcome) in [cause].compactMap({ $0 }) + outcomes { try judge(outcome) }
        guard outcomes.allSatisfy({ Int64($0.part.count) == $0.outcome.received }), size == file.length,
            var outcome = outcomes.first?.outcome
        else { throw ToolFailure(18, "the parts do not have the length of the file") }
        outcome.response = file.response
        outcome.received = file.length
        outcome.isSegmented = true
        return .done(outcome)
    }

    // MARK: The parts

    /// The code for a part of another version, which is not one of curl's codes.
    private static let changed: Int32 = -1

    private struct Refusal: Error {
        let reason: String
        /// The outcome of a load without a usable response.
        var outcome: TransferObserver.State?
    }

    /// Requests the first byte, to determine whether the file can be loaded in parts.
    private func probe() async -> Result<File, Refusal> {
        var request = request
        request.setValue("bytes=0-0", forHTTPHeaderField: "Range")
        let answer = Mutex<Result<File, Refusal>?>(nil)
        let outcome = await run(request, sink: BodySink(path: "/dev/null"), rate: plan.rate, most: 1) { response in
            // An empty file has no first byte, so the server responds with 416.
            guard let response = response as? HTTPURLResponse, response.statusCode < 400 || response.statusCode == 416 else {
                return nil
            }
            let found = Self.file(of: response)
            answer.withLock { $0 = found }
            if case .success = found { return nil }
            return ToolFailure(0, nil)
        }
        if outcome.failure?.code == 63 { return .failure(Refusal(reason: "the server sends more than was requested")) }
        if let answer = answer.withLock({ $0 }) {
            guard case .success = answer, outcome.error != nil || outcome.failure != nil else { return answer }
        }
        return .failure(Refusal(reason: "the server does not answer a range request", outcome: outcome))
    }

    private static func file(of response: HTTPURLResponse) -> Result<File, Refusal> {
        guard response.statusCode == 206, let length = length(of: response, part: 0..<1) else {
            return .failure(Refusal(reason: "the server does not support range requests"))
        }
        guard let tag = response.value(forHTTPHeaderField: "ETag"), tag.hasPrefix("\""), tag.count > 2 else {
            return .failure(Refusal(reason: "the server does not send a strong ETag"))
        }
        guard isPlain(response) else { return .failure(Refusal(reason: "the server sends parts of an encoded body")) }
        return .success(File(length: length, tag: tag, response: response))
    }

    private static func isPlain(_ response: HTTPURLResponse) -> Bool {
        (response.value(forHTTPHeaderField: "Content-Encoding") ?? "identity").lowercased() == "identity"
    }

    /// Returns the complete length, if the response contains exactly this part.
    private static func length(of response: HTTPURLResponse, part: Range<Int64>) -> Int64? {
        let text = response.value(forHTTPHeaderField: "Content-Range") ?? ""
        let start = "bytes \(part.lowerBound)-\(part.upperBound - 1)/"
        guard text.hasPrefix(start), let length = Int64(text.dropFirst(start.count)), length >= part.upperBound else {
            return nil
        }
        return length
    }

    private func load(_ part: Range<Int64>, of file: File, share: Int) async -> TransferObserver.State {
        var request = request
        request.setValue("bytes=\(part.lowerBound)-\(part.upperBound - 1)", forHTTPHeaderField: "Range")
        request.setValue(file.tag, forHTTPHeaderField: "If-Range")
        let sink = BodySink(path: path, offset: part.lowerBound)
        let outcome = await run(
            request, sink: sink, rate: plan.rate.map { max(1, $0 / Int64(share)) }, most: Int64(part.count), total: file.length,
            share: share
        ) { response in
            guard let response = response as? HTTPURLResponse,
                response.statusCode < 400 || [412, 416].contains(response.statusCode)
            else {
                return nil
            }
            guard response.statusCode == 206, Self.length(of: response, part: part) == file.length, Self.isPlain(response),
                response.value(forHTTPHeaderField: "ETag") == file.tag
            else { return ToolFailure(Self.changed, "the server sends a part of another version") }
            return nil
        }
        try? sink.close()
        return outcome
    }

    private func run(
        _ request: URLRequest, sink: BodySink, rate: Int64?, most: Int64? = nil, total: Int64? = nil, share: Int = 1,
        objection: @escaping @Sendable (URLResponse) -> ToolFailure?
    ) async -> TransferObserver.State {
        var plan = plan
        plan.rate = rate
        plan.maximumSize = most
        plan.recording = plan.recording?.another()
        plan.slowest = plan.slowest.map { .init(bytes: max(1, $0.bytes / Int64(share)), seconds: $0.seconds) }
        plan.objection = objection
        plan.meter = nil
        if let total {
            plan.count = { [self] count in
                let all = received.withLock { received in
                    received += Int64(count)
                    return received
                }
                self.plan.meter?.update(all, of: total)
            }
        }
        return await TransferObserver(plan, prepared.answers, to: sink).load(in: prepared.configuration) { session in
            let task = session.dataTask(with: request)
            let isOver = tasks.withLock { tasks in
                tasks.all.append(task)
                return tasks.isOver
            }
            if isOver { task.cancel() }
            return task
        }
    }

    // MARK: The file

    private var size: Int64? {
        ((try? FileManager.default.attributesOfItem(atPath: path))?[.size] as? NSNumber)?.int64Value
    }

    /// Creates a new file with its final length.
    private func create(_ length: Int64) throws(ToolFailure) {
        unlink(path)
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw ToolFailure.system(23, "cannot create \(path)") }
        defer { close(descriptor) }
        guard ftruncate(descriptor, off_t(length)) == 0 else {
            throw ToolFailure.system(23, "cannot write \(path)")
        }
    }
}
