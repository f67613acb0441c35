// SPDX-License-Identifier: Apache-2.0

import Foundation
import HistoryModel
import LoadingTestKit

/// The server's state of one upload.
struct HistoryUpload {
    var offset = 0
    var isComplete = false
    /// The plan with the events that are still to come.
    var plan: UploadPlan
    var hasStopped = false
}

/// Resumable uploads: their first bytes are sent to ``Page/send``, the others to a separate URL.
extension HistoryPages {
    private static func plan(_ request: RecordedRequest) -> UploadPlan? {
        request.header("X-Upload").flatMap { UploadPlan(field: $0) }
    }

    private static func isCreation(_ request: RecordedRequest) -> Bool { request.method == "POST" || request.method == "PUT" }

    private static func offset(_ request: RecordedRequest) -> Int? { request.header("Upload-Offset").flatMap { Int($0) } }

    private static func versionField(_ plan: UploadPlan) -> (String, String) {
        ("Upload-Draft-Interop-Version", "\(plan.version)")
    }

    private static func state(_ upload: HistoryUpload) -> [(String, String)] {
        let completeness =
            upload.plan.version == 3
            ? ("Upload-Incomplete", upload.isComplete ? "?0" : "?1") : ("Upload-Complete", upload.isComplete ? "?1" : "?0")
        return [versionField(upload.plan), completeness, ("Upload-Offset", "\(upload.offset)")]
    }

    /// Whether the server refuses the request that creates an upload, because of its protocol version.
    func refusesUpload(_ load: Int, _ request: RecordedRequest) -> Bool {
        guard let plan = Self.plan(request), Self.isCreation(request) else { return false }
        return request.header("Upload-Draft-Interop-Version") != "\(plan.version)"
    }

    private func announcement(_ load: Int, _ plan: UploadPlan) -> SocketEffect {
        .write(ScriptedReply.head(104, [Self.versionField(plan), ("Location", "/send/uploads/\(load)")]))
    }

    /// The effects that end or hold the connection of an incomplete part; nil if the part is answered.
    func interruption(of load: Int, _ request: RecordedRequest) -> [SocketEffect]? {
        guard let plan = Self.plan(request), !refusesUpload(load, request) else { return nil }
        return content.state.withLock { state in
            let isCreation = Self.isCreation(request)
            guard isCreation || request.method == "PATCH" else { return nil }
            var upload = state.uploads[load] ?? HistoryUpload(plan: plan)
            if isCreation {
                // The creation may be sent again, for example by the successor of a killed daemon.
                (upload.offset, upload.isComplete) = (0, false)
            } else if Self.offset(request) != upload.offset || upload.isComplete {
                return nil
            }
            defer { state.uploads[load] = upload }
            let start = upload.offset
            var effects = isCreation ? [announcement(load, plan)] : []
            if let stop = upload.plan.stop, !upload.hasStopped, stop >= start, upload.plan.cuts.first.map({ stop <= $0 }) ?? true
            {
                upload.hasStopped = true
                upload.offset = stop
                return effects + [.awaitBody(stop - start), .gate("load-\(load)"), .close]
            }
            while let cut = upload.plan.cuts.first {
                upload.plan.cuts.removeFirst()
                guard cut >= start else { continue }
                upload.offset = cut
                return effects + [.awaitBody(cut - start), cut % 2 == 0 ? .reset : .close]
            }
            if upload.plan.losesAnswer {
                upload.plan.losesAnswer = false
                (upload.offset, upload.isComplete) = (plan.length, true)
                return effects + [.awaitRequestEnd, .close]
            }
            guard isCreation else { return nil }
            (upload.offset, upload.isComplete) = (plan.length, true)
            effects.append(.awaitRequestEnd)
            return effects + answer(upload, request, state).effects
        }
    }

    /// The response to an upload, which is the same for every load that resumes the upload.
    private func answer(
        _ upload: HistoryUpload, _ request: RecordedRequest, _ state: HistoryServers.State
    ) -> ScriptedReply {
        let identity: Identity? = origin == .clear ? nil : name == "secure" ? state.shown[request.connection] : .valid
        let head = PageHead(
            load: 0, server: name, identity: identity, page: .send, version: state.versions[.send]?[origin] ?? 1, lines: 3)
        return .ok(PageText.text(head), [("Cache-Control", "no-store")] + Self.state(upload).dropLast())
    }

    /// The response to a request for the upload's offset, or to its last part.
    func replyToUpload(_ load: Int, _ request: RecordedRequest) -> ScriptedReply? {
        guard let plan = Self.plan(request) else { return nil }
        if refusesUpload(load, request) { return .status(400, [Self.versionField(plan)], body: "another version") }
        return content.state.withLock { state in
            guard var upload = state.uploads[load] else { return .status(404) }
            switch request.method {
            case "HEAD": return [.write(ScriptedReply.head(204, Self.state(upload)))]
            case "DELETE": return [.write(ScriptedReply.head(204))]
            case "PATCH":
                guard !upload.isComplete, let offset = Self.offset(request), offset == upload.offset else {
                    state.uploadFaults.append(
                        Fault(.twice, "a part of load \(load) at \(Self.offset(request) ?? -1), where \(upload.offset) are there")
                    )
                    return .status(409, Self.state(upload))
                }
                if request.body != Array(UploadPlan.content(of: load, plan.length).dropFirst(offset)) {
                    state.uploadFaults.append(
                        Fault(.whole, "load \(load): \(request.bodyLength) other bytes at \(offset) of \(plan.length)"))
                }
                (upload.offset, upload.isComplete) = (plan.length, true)
                state.uploads[load] = upload
                return answer(upload, request, state)
            default: return .status(405)
            }
        }
    }
}
