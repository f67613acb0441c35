// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// Curl options that are accepted without an effect, because they request the default behavior.
enum NoEffectOption: String, EnumerableFlag {
    case anyauth, ftpPasv, parallelImmediate, pathAsIs, proxyAnyauth, noProgressMeter, styledOutput, noStyledOutput
    case suppressConnectHeaders, tcpNodelay, disable

    static func name(for value: NoEffectOption) -> NameSpecification {
        let words = value.rawValue.reduce(into: "") { $0 += $1.isUppercase ? "-" + $1.lowercased() : String($1) }
        return value == .disable ? [.customShort("q"), .customLong(words)] : .customLong(words)
    }

    static func help(for value: NoEffectOption) -> ArgumentHelp? {
        ArgumentHelp("This is the default.", visibility: .hidden)
    }
}

struct NoEffectOptions: ParsableArguments {
    @Flag
    var needless: [NoEffectOption] = []
}
