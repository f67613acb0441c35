// SPDX-License-Identifier: Apache-2.0

/// An HTTP load.
package typealias Row = Choice<Dimension>

extension Choice<Dimension> {
    package var version: HTTPVersion { HTTPVersion.allCases[numbers[Dimension.protocol.rawValue]] }
    package var security: Security { Security.allCases[numbers[Dimension.security.rawValue]] }
    package var route: Route { Route.allCases[numbers[Dimension.route.rawValue]] }
    package var session: SessionKind { SessionKind.allCases[numbers[Dimension.session.rawValue]] }
    package var principal: Login { Login.allCases[numbers[Dimension.principal.rawValue]] }
    package var cookies: Cookies { Cookies.allCases[numbers[Dimension.cookies.rawValue]] }
    package var stored: Stored { Stored.allCases[numbers[Dimension.stored.rawValue]] }
    package var policy: Policy { Policy.allCases[numbers[Dimension.policy.rawValue]] }
    package var message: Message { Message.allCases[numbers[Dimension.message.rawValue]] }
    package var answer: AnswerKind { AnswerKind.allCases[numbers[Dimension.answer.rawValue]] }
    package var coding: Coding { Coding.allCases[numbers[Dimension.coding.rawValue]] }
    package var end: Ending { Ending.allCases[numbers[Dimension.end.rawValue]] }
    package var way: Way { Way.allCases[numbers[Dimension.way.rawValue]] }
    package var command: Command { Command.allCases[numbers[Dimension.command.rawValue]] }
    package var moment: Moment { Moment.allCases[numbers[Dimension.moment.rawValue]] }
    package var uploads: Uploads { Uploads.allCases[numbers[Dimension.uploads.rawValue]] }
}
