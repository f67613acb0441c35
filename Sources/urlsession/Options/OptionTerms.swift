// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// The names of an option and of its value, declared as the help shows them: `@Option("--output -o <file>", "The file to write.")`.
private struct OptionTerms {
    let names: NameSpecification
    let help: ArgumentHelp
    let completion: CompletionKind?

    init(_ terms: String, _ help: String, _ visibility: ArgumentVisibility) {
        let parts = terms.split(separator: " <", maxSplits: 1)
        let value = parts.count > 1 ? String(parts[1].dropLast()) : nil
        names = NameSpecification(
            parts[0].split(separator: " ").map { name in
                name.hasPrefix("--") ? .customLong(String(name.dropFirst(2))) : .customShort(name.last ?? "-")
            })
        self.help = ArgumentHelp(help, valueName: value, visibility: visibility)
        completion = value == "folder" ? .directory : value == "path" || value?.hasPrefix("file") == true ? .file() : nil
    }
}

extension Option {
    init<Content: ExpressibleByArgument>(_ terms: String, _ help: String, visibility: ArgumentVisibility = .default)
    where Value == Content? {
        let terms = OptionTerms(terms, help, visibility)
        self.init(name: terms.names, help: terms.help, completion: terms.completion)
    }

    init(wrappedValue: Value, _ terms: String, _ help: String) where Value: ExpressibleByArgument {
        let terms = OptionTerms(terms, help, .default)
        self.init(wrappedValue: wrappedValue, name: terms.names, help: terms.help)
    }

    init<Content: ExpressibleByArgument>(wrappedValue: [Content], _ terms: String, _ help: String) where Value == [Content] {
        let terms = OptionTerms(terms, help, .default)
        self.init(wrappedValue: wrappedValue, name: terms.names, help: terms.help, completion: terms.completion)
    }

    init<Content>(
        wrappedValue: [Content], _ terms: String, _ help: String, transform: @Sendable @escaping (String) throws -> Content
    ) where Value == [Content] {
        let terms = OptionTerms(terms, help, .default)
        self.init(wrappedValue: wrappedValue, name: terms.names, help: terms.help, transform: transform)
    }
}

extension Flag where Value == Bool {
    init(wrappedValue: Bool, _ terms: String, _ help: String, visibility: ArgumentVisibility = .default) {
        let terms = OptionTerms(terms, help, visibility)
        self.init(wrappedValue: wrappedValue, name: terms.names, help: terms.help)
    }
}

extension Flag where Value == Int {
    init(_ terms: String, _ help: String) {
        let terms = OptionTerms(terms, help, .default)
        self.init(name: terms.names, help: terms.help)
    }
}

/// Refuses the command line if an option, or a combination of options, is wrong.
func refuse(if isWrong: Bool, _ reason: @autoclosure () -> String) throws(ValidationError) {
    if isWrong { throw ValidationError(reason()) }
}
