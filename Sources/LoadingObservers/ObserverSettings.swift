// SPDX-License-Identifier: Apache-2.0

#if Logging || Metrics || Tracing
package import LoadingModel
#if Logging
package import Logging
#endif
#if Metrics
package import Metrics
#endif
#if Tracing
package import Tracing
#endif

/// The observers of a session's requests.
package struct ObserverSettings: Sendable {
    #if Logging
    /// The logger; nil disables logging.
    package var logger: Logger?
    #endif
    #if Metrics
    /// The metrics factory; nil means the process's factory.
    package var metricsFactory: (any MetricsFactory)?
    #endif
    #if Tracing
    /// The tracer; nil means the process's tracer.
    package var tracer: (any Tracer)?
    #endif

    package init() {}
}

/// Makes the observers of one session's tasks, and observes the session's connections.
package final class SessionObservers: Sendable {
    private let settings: ObserverSettings
    #if Metrics
    private let meters: MeterSource
    #endif

    package init(_ settings: ObserverSettings) {
        self.settings = settings
        #if Metrics
        meters = MeterSource(settings.metricsFactory)
        #endif
    }

    /// Returns the observer for a task that is created now, in the caller's context; nil if nothing would be recorded.
    package func observer() -> (any LoadObserver)? {
        var observer = TaskObserver()
        #if Logging
        if let logger = settings.logger, logger.logLevel <= .debug { observer.logger = logger }
        #endif
        #if Metrics
        observer.meters = meters.isUsed ? meters : nil
        #endif
        #if Tracing
        observer.tracing = TaskTracing(settings.tracer)
        #endif
        return observer.recordsAnything ? ObservedTask(observer) : nil
    }
}

extension SessionObservers: ConnectionObserver {
    package func opened(_ connection: ObservedConnection) {
        #if Logging
        settings.logger?.log("connection opened", connection)
        #endif
        #if Metrics
        meters.current?.openConnections(to: connection).increment()
        #endif
    }

    package func closed(_ connection: ObservedConnection) {
        #if Logging
        settings.logger?.log("connection closed", connection)
        #endif
        #if Metrics
        meters.current?.openConnections(to: connection).decrement()
        #endif
    }
}
#endif
