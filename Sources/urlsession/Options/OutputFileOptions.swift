// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// The options for the file of a body: its folder, modification time and maximum size.
struct OutputFileOptions: ParsableArguments {
    @Option("--output-dir <folder>", "Put files into this folder.")
    var folder: String?

    @Option("--directory-prefix <folder>", "The same, and create the folder; for download also -P.")
    var prefix: String?

    @Flag("--create-dirs", "Create the missing folders of a file.")
    var createsFolders = false

    @Flag("-R --remote-time", "Set the file's time to that of the server's file.")
    var takesTime = false

    @Option("--max-filesize <bytes>", "Exit with 63 if the body is longer; k, M or G may follow.")
    var maximumSize: ByteCount?

    @Flag("-# --progress-bar", "The default.", visibility: .hidden)
    var bar = false

    /// Returns the path for a file name, and creates the folders if the user requests that.
    func path(_ name: String) throws(ToolFailure) -> String {
        let path = (prefix ?? folder).map { ($0.hasSuffix("/") ? $0 : $0 + "/") + name } ?? name
        guard createsFolders || prefix != nil else { return path }
        let parent = URL(fileURLWithPath: path).deletingLastPathComponent().path
        try ToolFailure.describing(23, "cannot create \(parent)") {
            try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
        }
        return path
    }

    /// Sets the modification time of a complete file to the response's Last-Modified time, if the user requests that or `always` is
    /// true.
    func date(_ file: String?, by response: URLResponse?, always: Bool = false) throws(ToolFailure) {
        guard takesTime || always, let file, file != "-",
            let changed = (response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Last-Modified").flatMap(HTTPTime.date)
        else { return }
        try ToolFailure.describing(23, "cannot set the time of \(file)") {
            try FileManager.default.setAttributes([.modificationDate: changed], ofItemAtPath: file)
        }
    }
}
