//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import FoundationEssentials
import HTTPTransport
import LoadingModel

/// A download: the body goes into a file, which may continue the file of an earlier load.
final class DownloadLoad: LoadKind {
    private let resumeData: Data?
    private var resumption: DownloadResumption?

    init(resuming resumeData: Data?) { self.resumeData = resumeData }

    override var runsItself: Bool { true }
    override var usesCache: Bool { false }
    override var earlierFile: EarlierFile? { resumption?.earlierFile }

    override func addFields(to fields: inout [(String, String)], for hop: Hop, _ body: OutgoingBody, by route: Route) {
        if let resumption { fields.insert(contentsOf: resumption.rangeFields, at: 0) }
    }

    override func run(by stages: any HopStages, in load: Load) async throws(LoadError) -> TaskOutcome.Body {
        guard let resumeData else {
            return try await DownloadDelivery.deliver(
                try await stages.answer(load.firstHop(), in: load), continuing: nil, of: load)
        }
        let resumption = try DownloadResumption(
            resuming: resumeData, of: load.order.request.url, in: load.session.policy.temporaryDirectory)
        self.resumption = resumption
        return try await resumption.deliver(by: stages, in: load)
    }
}
