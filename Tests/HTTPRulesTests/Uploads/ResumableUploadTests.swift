// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPWire
import SeededNumbers
import Testing

/// The steps of a resumable upload (draft-ietf-httpbis-resumable-upload-12; draft 01 for version 3).
struct ResumableUploadTests {
    private typealias Step = ResumableUpload.Step
    private typealias Part = ResumableUpload.Part

    private static let origin = URL(string: "https://shop.example/files") ?? URL(filePath: "/")
    private static let resource = URL(string: "https://shop.example/uploads/1") ?? URL(filePath: "/")

    private static func head(_ status: Int, _ fields: [(String, String)] = []) -> ResponseHead {
        ResponseHead(
            majorVersion: 1, minorVersion: 1, status: status, headers: HeaderBlock(fields.map { (name: $0.0, value: $0.1) }))
    }

    private static func announced(_ fields: [(String, String)] = [], length: Int64? = 1000) -> ResumableUpload {
        var upload = ResumableUpload(length: length)
        upload.beginCreation(length: length)
        _ = upload.handleInterim(head(104, [("Location", "/uploads/1")] + fields), from: origin, given: 0, now: 0)
        return upload
    }

    /// Creates an upload whose connection was lost after `given` bytes were written to the network.
    private static func interrupted(given: Int64 = 600, _ fields: [(String, String)] = []) -> ResumableUpload {
        var upload = announced(fields)
        #expect(upload.lost(given: given, now: 1) == .retrieve(after: 0, keepsResponse: false))
        return upload
    }

    private static func offset(_ value: Int64, _ complete: String = "?0") -> ResponseHead {
        head(204, [("Upload-Offset", String(value)), ("Upload-Complete", complete)])
    }

    // MARK: Creation

    @Test func `the first request is marked as complete in the syntax of its version`() {
        let fields = [
            UploadVersion.three: ["Upload-Draft-Interop-Version: 3", "Upload-Incomplete: ?0"],
            .five: ["Upload-Draft-Interop-Version: 5", "Upload-Complete: ?1"],
            .six: ["Upload-Draft-Interop-Version: 6", "Upload-Complete: ?1", "Upload-Length: 1000"],
            .eight: ["Upload-Draft-Interop-Version: 8", "Upload-Complete: ?1", "Upload-Length: 1000"],
        ]
        for version in UploadVersion.allCases {
            let upload = ResumableUpload(length: 1000, version: version)
            #expect(upload.fields.map { "\($0.0): \($0.1)" } == fields[version])
        }
    }

    @Test func `a success status ends the upload, with or without a 104`() {
        var plain = ResumableUpload(length: 1000)
        #expect(plain.answered(Self.head(200), from: Self.origin, given: 1000, now: 0) == .deliver)
        var announced = Self.announced()
        #expect(
            announced.answered(Self.head(201, [("Upload-Complete", "?1")]), from: Self.origin, given: 1000, now: 0) == .deliver)
        #expect(announced.isOver)
    }

    @Test func `an upload without an upload resource is not resumed`() {
        var upload = ResumableUpload(length: 1000)
        #expect(upload.lost(given: 500, now: 0) == nil)
        #expect(upload.point(now: 0) == nil)
    }

    @Test(arguments: ["http://shop.example/uploads/1", "ftp://shop.example/1", "data:,", "file:///etc/passwd", "//"])
    func `an upload resource that a redirect could not lead to is ignored`(location: String) {
        var upload = ResumableUpload(length: 1000)
        _ = upload.handleInterim(Self.head(104, [("Location", location)]), from: Self.origin, given: 0, now: 0)
        #expect(upload.resource == nil)
    }

    @Test func `only the first upload resource counts`() {
        var upload = Self.announced()
        #expect(upload.handleInterim(Self.head(104, [("Location", "/uploads/2")]), from: Self.origin, given: 0, now: 0) == nil)
        #expect(upload.resource == Self.resource)
        _ = upload.answered(Self.head(200), from: Self.origin, given: 1000, now: 0)
        #expect(upload.handleInterim(Self.head(104, [("Location", "/uploads/3")]), from: Self.origin, given: 0, now: 0) == nil)
        #expect(upload.isOver)
    }

    @Test func `a server that speaks another version gets one request in that version`() {
        var upload = ResumableUpload(length: 1000)
        let refusal = Self.head(400, [("Upload-Draft-Interop-Version", "3")])
        #expect(upload.answered(refusal, from: Self.origin, given: 0, now: 0) == .create(Part()))
        #expect(upload.version == .three)
        let other = Self.head(400, [("Upload-Draft-Interop-Version", "6")])
        #expect(upload.answered(other, from: Self.origin, given: 0, now: 0) == .deliver)
        var unknown = ResumableUpload(length: 1000)
        let strange = Self.head(400, [("Upload-Draft-Interop-Version", "99")])
        #expect(unknown.answered(strange, from: Self.origin, given: 0, now: 0) == .deliver)
    }

    @Test func `a 104 of an unsupported version is ignored`() {
        let upload = Self.announced([("Upload-Draft-Interop-Version", "99")])
        #expect(upload.resource == nil)
        #expect(Self.announced([("Upload-Draft-Interop-Version", "3")]).version == .three)
    }

    @Test func `a server that has a part is asked for its offset`() {
        var upload = Self.announced()
        let partial = Self.head(201, [("Upload-Complete", "?0"), ("Location", "/uploads/1")])
        #expect(upload.answered(partial, from: Self.origin, given: 1000, now: 0) == .retrieve(after: 0, keepsResponse: false))
        var placeless = ResumableUpload(length: 1000)
        guard case .fail = placeless.answered(Self.head(201, [("Upload-Complete", "?0")]), from: Self.origin, given: 1000, now: 0)
        else {
            Issue.record("a part without an upload resource is not a success")
            return
        }
    }

    @Test func `an error response is kept while the offset is requested, and delivered if the upload is complete`() {
        var upload = Self.announced()
        #expect(
            upload.answered(Self.head(500), from: Self.origin, given: 1000, now: 0) == .retrieve(after: 0.25, keepsResponse: true)
        )
        #expect(upload.answered(Self.offset(1000, "?1"), from: Self.resource, given: 0, now: 0) == .deliverKept)
        var partial = Self.announced()
        _ = partial.answered(Self.head(503), from: Self.origin, given: 700, now: 0)
        #expect(partial.answered(Self.offset(400), from: Self.resource, given: 0, now: 0) == .append(Part(offset: 400)))
        var gone = Self.announced()
        _ = gone.answered(Self.head(503), from: Self.origin, given: 700, now: 0)
        #expect(gone.answered(Self.head(404), from: Self.resource, given: 0, now: 0) == .deliverKept)
    }

    @Test(arguments: [401, 407])
    func `a server that demands a login keeps the upload for a later load`(_ status: Int) {
        var upload = Self.interrupted()
        let step = upload.answered(Self.head(status), from: Self.resource, given: 0, now: 2)
        #expect(step == .fail(.unauthorized(status: status)))
        #expect(upload.point(now: 2)?.resource == Self.resource)
        // A response that was kept does not hide that the upload is incomplete.
        var failed = Self.announced()
        _ = failed.answered(Self.head(503), from: Self.origin, given: 700, now: 0)
        #expect(failed.answered(Self.head(status), from: Self.resource, given: 0, now: 0) == step)
    }

    // MARK: Offsets

    @Test func `the rest is sent from the offset`() {
        var upload = Self.interrupted()
        #expect(upload.method == "HEAD")
        #expect(upload.answered(Self.offset(600), from: Self.resource, given: 0, now: 2) == .append(Part(offset: 600)))
        #expect(upload.method == "PATCH")
        #expect(
            upload.fields.map { "\($0.0): \($0.1)" } == [
                "Upload-Draft-Interop-Version: 8", "Upload-Complete: ?1", "Upload-Offset: 600",
                "Content-Type: application/partial-upload",
            ])
        #expect(upload.answered(Self.head(200, [("Upload-Complete", "?1")]), from: Self.resource, given: 400, now: 3) == .deliver)
    }

    @Test func `an offset beyond the sent bytes, beyond the end, or before the acknowledged ones fails the upload`() {
        for value: Int64 in [601, 1001, .max] {
            var upload = Self.interrupted()
            guard case .fail(.contradiction) = upload.answered(Self.offset(value), from: Self.resource, given: 0, now: 2) else {
                Issue.record("\(value)")
                return
            }
            #expect(upload.point(now: 2) == nil)
        }
        var upload = Self.announced()
        #expect(upload.handleInterim(Self.head(104, [("Upload-Offset", "500")]), from: Self.origin, given: 600, now: 0) == nil)
        _ = upload.lost(given: 600, now: 1)
        guard case .fail(.contradiction) = upload.answered(Self.offset(499), from: Self.resource, given: 0, now: 2) else {
            Issue.record("the offset decreased")
            return
        }
        var liar = Self.announced()
        guard
            case .fail(.contradiction) = liar.handleInterim(
                Self.head(104, [("Upload-Offset", "700")]), from: Self.origin, given: 600, now: 0)
        else {
            Issue.record("the offset exceeds the sent bytes")
            return
        }
    }

    @Test func `a missing offset or another length fails the upload`() {
        for fields in [
            [("Upload-Complete", "?0")], [("Upload-Offset", "-1")], [("Upload-Offset", "5"), ("Upload-Length", "999")],
        ] {
            var upload = Self.interrupted()
            guard case .fail(.contradiction) = upload.answered(Self.head(204, fields), from: Self.resource, given: 0, now: 2)
            else {
                Issue.record("\(fields)")
                return
            }
        }
    }

    @Test func `an upload counts as complete only if the server says so and has all bytes`() {
        var upload = Self.interrupted(given: 1000)
        #expect(upload.answered(Self.offset(1000, "?1"), from: Self.resource, given: 0, now: 2) == .deliver)
        var short = Self.interrupted(given: 1000)
        guard case .fail(.contradiction) = short.answered(Self.offset(999, "?1"), from: Self.resource, given: 0, now: 2) else {
            Issue.record("complete with 999 of 1000 bytes")
            return
        }
        var open = Self.interrupted(given: 1000)
        #expect(open.answered(Self.offset(1000), from: Self.resource, given: 0, now: 2) == .append(Part(offset: 1000)))
    }

    @Test func `an upload that the server has forgotten is not restarted`() {
        var upload = Self.interrupted()
        #expect(upload.answered(Self.head(404), from: Self.resource, given: 0, now: 2) == .fail(.gone(status: 404)))
    }

    @Test func `attempts without progress are limited, and progress resets the count`() {
        var upload = Self.interrupted()
        var count = 0
        while case .append? = Optional(upload.answered(Self.offset(600), from: Self.resource, given: 0, now: 2)), count < 100 {
            count += 1
            guard upload.lost(given: 0, now: 3) != nil else { break }
        }
        #expect(count == ResumableUpload.maximumAttemptsWithoutProgress)
        #expect(upload.point(now: 3) != nil)

        var steady = Self.interrupted(given: 1000)
        for step in 1...50 {
            #expect(
                steady.answered(Self.offset(Int64(step)), from: Self.resource, given: 0, now: 2)
                    == .append(Part(offset: Int64(step))))
            #expect(steady.lost(given: 10, now: 3) == .retrieve(after: 0, keepsResponse: false))
        }
    }

    @Test func `after a conflict or an offset problem the offset is requested again, and other refusals are the result`() {
        for (status, problem) in [
            (409, nil), (400, "https://iana.org/assignments/http-problem-types#mismatching-upload-offset"),
            (400, "https://iana.org/assignments/http-problem-types#completed-upload"),
        ] {
            var upload = Self.interrupted()
            _ = upload.answered(Self.offset(600), from: Self.resource, given: 0, now: 2)
            guard case .retrieve = upload.answered(Self.head(status), from: Self.resource, given: 0, problem: problem, now: 3)
            else {
                Issue.record("\(status) \(problem ?? "")")
                return
            }
        }
        for (status, problem) in [
            (400, nil), (403, nil), (400, "https://iana.org/assignments/http-problem-types#inconsistent-upload-length"),
        ] {
            var upload = Self.interrupted()
            _ = upload.answered(Self.offset(600), from: Self.resource, given: 0, now: 2)
            #expect(upload.answered(Self.head(status), from: Self.resource, given: 0, problem: problem, now: 3) == .deliver)
        }
    }

    // MARK: Limits

    @Test func `a limit for one request splits the upload into parts`() {
        var upload = ResumableUpload(length: 1000)
        upload.beginCreation(length: 1000)
        let announcement = Self.head(104, [("Location", "/uploads/1"), ("Upload-Limit", "max-append-size=400")])
        #expect(
            upload.handleInterim(announcement, from: Self.origin, given: 100, now: 0) == .retrieve(after: 0, keepsResponse: false)
        )
        #expect(
            upload.answered(Self.offset(100), from: Self.resource, given: 0, now: 0)
                == .append(Part(offset: 100, count: 400, isLast: false)))
        #expect(
            upload.answered(Self.head(204, [("Upload-Complete", "?0")]), from: Self.resource, given: 400, now: 0)
                == .append(Part(offset: 500, count: 400, isLast: false)))
        #expect(
            upload.answered(Self.head(204, [("Upload-Complete", "?0")]), from: Self.resource, given: 400, now: 0)
                == .append(Part(offset: 900)))
        #expect(upload.answered(Self.head(200), from: Self.resource, given: 100, now: 0) == .deliver)
    }

    @Test func `an upload refused with 413 and a limit restarts in parts`() {
        var upload = ResumableUpload(length: 1000)
        let refusal = Self.head(413, [("Upload-Limit", "max-append-size=600")])
        #expect(upload.answered(refusal, from: Self.origin, given: 10, now: 0) == .create(Part(count: 600, isLast: false)))
        #expect(upload.fields.contains { $0 == ("Upload-Complete", "?0") })
        let created = Self.head(201, [("Location", "/uploads/1"), ("Upload-Complete", "?0")])
        #expect(upload.answered(created, from: Self.origin, given: 600, now: 0) == .append(Part(offset: 600)))
        var plain = ResumableUpload(length: 1000)
        #expect(plain.answered(Self.head(413), from: Self.origin, given: 10, now: 0) == .discover)
    }

    @Test func `an upload fails at once if the server does not accept its size`() {
        var large = ResumableUpload(length: 1000)
        let most = Self.head(104, [("Location", "/uploads/1"), ("Upload-Limit", "max-size=999")])
        #expect(large.handleInterim(most, from: Self.origin, given: 0, now: 0) == .fail(.tooLarge(limit: 999)))
        var small = ResumableUpload(length: 1000)
        let least = Self.head(104, [("Location", "/uploads/1"), ("Upload-Limit", "min-size=1001")])
        #expect(small.handleInterim(least, from: Self.origin, given: 0, now: 0) == .fail(.tooSmall(limit: 1001)))
    }

    @Test func `an expired upload is not resumed`() {
        var upload = Self.announced([("Upload-Limit", "max-age=10")])
        #expect(upload.point(now: 9)?.expiry == 10)
        #expect(upload.point(now: 10) == nil)
        #expect(upload.lost(given: 5, now: 11) == nil)
    }

    // MARK: Histories

    /// With random servers, each upload ends, acknowledged bytes are not sent again, and success means that the server has the
    /// whole upload.
    @Test func `every upload ends, and acknowledged bytes are never sent again`() {
        var numbers = SeededNumbers(seed: 11)
        var ends: [String: Int] = [:]
        for _ in 0..<20_000 {
            let length = Int64.random(in: 1...50, using: &numbers)
            let most = Int64.random(in: 1...60, using: &numbers)
            var upload = ResumableUpload(length: length)
            upload.beginCreation(length: length)
            var has: Int64 = 0
            var isComplete = false
            var isKnown = false
            var step: ResumableUpload.Step? = .create(Part())
            var count = 0
            while let next = step {
                count += 1
                #expect(count < 2_000)
                guard count < 2_000 else { return }
                let url: URL
                switch next {
                case .create(let part), .append(let part):
                    url = upload.isCreating ? Self.origin : Self.resource
                    if upload.isCreating { (has, isComplete) = (0, false) }
                    #expect(part.offset >= upload.acknowledged || upload.isCreating)
                    let whole = (part.count ?? (length - part.offset))
                    #expect(part.offset + whole <= length && (part.isLast == (part.offset + whole == length) || !part.isLast))
                    if upload.isCreating, !isKnown, Bool.random(using: &numbers) {
                        let fields =
                            [("Location", "/uploads/1")]
                            + (Int.random(in: 0..<4, using: &numbers) == 0 ? [("Upload-Limit", "max-append-size=\(most)")] : [])
                        isKnown = true
                        if let other = upload.handleInterim(Self.head(104, fields), from: url, given: 0, now: 0) {
                            step = other
                            continue
                        }
                    }
                    let taken = Int64.random(in: 0...whole, using: &numbers)
                    if part.offset == has {
                        has += taken
                        if Int.random(in: 0..<3, using: &numbers) == 0 {
                            step = upload.lost(given: whole, now: 0)
                            if step == nil { ends["lost", default: 0] += 1 }
                            continue
                        }
                        has += whole - taken
                        isComplete = part.isLast
                        #expect(!isComplete || has == length)
                        let fields = [("Upload-Complete", isComplete ? "?1" : "?0"), ("Location", "/uploads/1")]
                        step = upload.answered(Self.head(isComplete ? 200 : 201, fields), from: url, given: whole, now: 0)
                    } else {
                        step = upload.answered(Self.head(409), from: url, given: 0, now: 0)
                    }
                case .retrieve:
                    #expect(isKnown)
                    switch Int.random(in: 0..<6, using: &numbers) {
                    case 0: step = upload.lost(given: 0, now: 0)
                    case 1: step = upload.answered(Self.head(503), from: Self.resource, given: 0, now: 0)
                    default:
                        step = upload.answered(Self.offset(has, isComplete ? "?1" : "?0"), from: Self.resource, given: 0, now: 0)
                    }
                    if step == nil { ends["lost", default: 0] += 1 }
                case .discover:
                    Issue.record("no server has refused the upload for its size")
                    step = nil
                case .deliver:
                    #expect(isComplete && has == length)
                    ends["whole", default: 0] += 1
                    step = nil
                case .deliverKept:
                    ends["kept", default: 0] += 1
                    step = nil
                case .fail(let reason):
                    if case .contradiction(let text) = reason { Issue.record("a correct server caused a contradiction: \(text)") }
                    ends["failed", default: 0] += 1
                    step = nil
                }
            }
        }
        #expect(ends["whole", default: 0] > 5_000 && ends["lost", default: 0] > 100)
    }

    // MARK: Limits

    private static let tooLarge = head(413)

    private static func refused(length: Int64?) -> ResumableUpload {
        var upload = ResumableUpload(length: length)
        #expect(upload.answered(tooLarge, from: origin, given: 500, now: 0) == .discover)
        #expect(upload.method == "OPTIONS")
        return upload
    }

    @Test(arguments: [1000, nil]) func `limits in a response to OPTIONS split the upload into parts`(length: Int64?) {
        var upload = Self.refused(length: length)
        let limits = Self.head(204, [("Upload-Limit", "max-append-size=400"), ("Upload-Draft-Interop-Version", "6")])
        #expect(upload.answered(limits, from: Self.origin, given: 0, now: 0) == .create(Part(count: 400, isLast: false)))
        #expect(upload.version == .six)
        // OPTIONS is sent once.
        #expect(upload.answered(Self.tooLarge, from: Self.origin, given: 400, now: 0) == .deliver)
    }

    @Test func `a response to OPTIONS without a smaller limit delivers the refusal`() {
        for answer in [
            Self.head(405), Self.head(200), Self.head(204, [("Upload-Limit", "max-append-size=1000")]),
            Self.head(204, [("Upload-Limit", "max-append-size=?1")]), Self.head(404, [("Upload-Limit", "max-append-size=1")]),
            Self.head(204, [("Upload-Limit", "max-append-size=1"), ("Upload-Draft-Interop-Version", "99")]),
        ] {
            var upload = Self.refused(length: 1000)
            #expect(upload.answered(answer, from: Self.origin, given: 0, now: 0) == .deliverKept)
        }
        var lost = Self.refused(length: 1000)
        #expect(lost.lost(given: 0, now: 0) == .deliverKept)
    }

    @Test func `a stream that exceeds the server's limit is interrupted and sent in parts`() {
        var upload = Self.announced([("Upload-Limit", "max-append-size=400")], length: nil)
        #expect(upload.isCreating)
        #expect(upload.contentExceededLimit(given: 400) == .retrieve(after: 0, keepsResponse: false))
        #expect(
            upload.answered(Self.offset(400), from: Self.resource, given: 0, now: 0)
                == .append(Part(offset: 400, count: 400, isLast: false)))
        #expect(
            upload.answered(Self.offset(800), from: Self.resource, given: 400, now: 0)
                == .append(Part(offset: 800, count: 400, isLast: false)))
        upload.partEnded(after: 50)
        #expect(upload.answered(Self.offset(850), from: Self.resource, given: 50, now: 0) == .append(Part(offset: 850)))
        #expect(upload.fields.contains { $0 == ("Upload-Complete", "?1") })
    }

    @Test func `a part that is known to be the last is marked as such`() {
        var upload = Self.announced([("Upload-Limit", "max-append-size=400")], length: nil)
        _ = upload.contentExceededLimit(given: 400)
        _ = upload.answered(Self.offset(300), from: Self.resource, given: 0, now: 0)
        upload.markPartAsLast(count: 20)
        #expect(upload.length == 320)
        #expect(upload.fields.contains { $0 == ("Upload-Complete", "?1") })
    }

    @Test func `after an early response to a part, the offset is requested`() {
        var upload = Self.announced([("Upload-Limit", "max-append-size=400")])
        upload.didSend(upTo: 600)
        let part = Part(offset: 100, count: 400, isLast: false)
        #expect(upload.answered(Self.offset(100), from: Self.resource, given: 0, now: 0) == .append(part))
        let early = Self.head(204, [("Upload-Complete", "?0")])
        guard case .retrieve = upload.answered(early, from: Self.resource, given: 10, now: 0) else {
            Issue.record("bytes were skipped")
            return
        }
    }
}
