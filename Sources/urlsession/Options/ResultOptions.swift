// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation

/// The options for the destination of a response, and for the part of it that is wanted.
struct ResultOptions: ParsableArguments {
    @Option("--output -o <file>", "Write the body to this file; one for each of several URLs.")
    var output: [String] = []

    @Flag("-O --remote-name", "Write the body to a file named after the URL; once for each URL.")
    var names: Int

    @Flag("--remote-name-all", "The same for every URL.")
    var namesAll = false

    @Flag("-J --remote-header-name", "With --remote-name: use the file name that the server suggests, unless that file exists.")
    var takesServerName = false

    @Option(
        "-C --continue-at <offset>",
        "Continue after this many bytes, or with - at the end of the file; exit with 33 if the rest may be of another version.")
    var continueAt: String?

    @Flag("--no-clobber", "If a file exists, write another one, with .1 and so on appended to its name.")
    var keepsFiles = false

    @Flag("--remove-on-error", "Remove the file of a load that fails.")
    var removesOnError = false

    @Flag("--include -i", "Show the response's headers before its body.")
    var include = false

    @Flag("-I --head", "Request only the headers (HEAD).")
    var head = false

    @Flag("--fail -f", "Show no body and exit with 22 if the server answers 400 or more.")
    var fail = false

    @Flag("--fail-with-body", "The same, but show the body.")
    var failsWithBody = false

    @Option("--range -r <range>", "Request only these bytes, such as 0-99, 100- or -100.")
    var range: String?

    @Option(
        "-z --time-cond <date|file>",
        "Load only if modified after this date, or after this file was; with a leading -, only if not.")
    var timeCondition: String?

    var takesName: Bool { names > 0 || namesAll }

    /// Returns the file for the body of a URL; nil for standard output.
    ///
    /// - Parameters:
    ///   - order: The load.
    ///   - place: The options for files.
    /// - Throws: If the file takes its name from the URL, and the URL has no file name.
    /// - Returns: The path.
    func file(for order: LoadOrder, _ place: OutputFileOptions) throws(ToolFailure) -> String? {
        let index = order.argument
        if index < output.count { return output[index] == "-" ? "-" : try place.path(order.name(output[index])) }
        return namesAll || index < names ? try place.path(DownloadFiles.name(of: order.address)) : nil
    }

    func validate() throws {
        try refuse(if: fail && failsWithBody, "--fail and --fail-with-body are mutually exclusive.")
        try refuse(if: takesServerName && !takesName, "--remote-header-name requires --remote-name.")
        try refuse(
            if: (removesOnError || keepsFiles) && continueAt != nil,
            "--continue-at cannot be combined with --remove-on-error or --no-clobber.")
        try refuse(if: takesServerName && (include || head), "--remote-header-name cannot be combined with --include or --head.")
        if let continueAt {
            guard continueAt == "-" || Int64(continueAt).map({ $0 >= 0 }) == true else {
                throw ValidationError("--continue-at must be a number of bytes, or '-'.")
            }
            try refuse(
                if: range != nil || timeCondition != nil || takesServerName || include || head || failsWithBody,
                "--continue-at cannot be combined with --range, --time-cond, --remote-header-name, --include, --head or --fail-with-body."
            )
        }
        if let range,
            range.isEmpty || !range.allSatisfy({ $0.isASCII && ($0.isNumber || "-, ".contains($0)) }) || !range.contains("-")
        {
            throw ValidationError("'\(range)' is not a range: write '0-99', '100-' or '-100'.")
        }
        try refuse(if: !output.isEmpty && takesName, "--output and --remote-name are mutually exclusive.")
    }
}
