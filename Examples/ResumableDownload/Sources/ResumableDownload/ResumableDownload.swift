// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// Downloads a URL into a file and shows its progress.
///
/// If the connection is lost, the download resumes at once and, if that does not help, when the program is run again.
@main
struct ResumableDownload {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let url = URL(string: arguments[1]) else {
            print("usage: ResumableDownload URL FILE")
            exit(2)
        }
        let target = URL(fileURLWithPath: arguments[2])
        // The resume data of an earlier run.
        let notes = target.appendingPathExtension("resume")
        var resumeData = try? Data(contentsOf: notes)

        for attempt in 1... {
            let download = Download(to: target)
            do {
                for try await event in download.events(of: url, resumeData: resumeData) {
                    switch event {
                    case .resumed(let offset): print("resumed at \(offset)")
                    case .progress(let percent): print("\(percent) %")
                    }
                }
                try? FileManager.default.removeItem(at: notes)
                print("done")
                return
            } catch let error as URLError {
                guard let rest = error.downloadTaskResumeData else {
                    guard resumeData != nil else { throw error }
                    // The resume data is invalid: start over.
                    resumeData = nil
                    try? FileManager.default.removeItem(at: notes)
                    continue
                }
                resumeData = rest
                try rest.write(to: notes)
                print("lost: \(error.localizedDescription)")
                if attempt == 5 {
                    print("run it again to resume")
                    exit(1)
                }
            }
        }
    }
}
