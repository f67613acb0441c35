// SPDX-License-Identifier: Apache-2.0

import BackgroundDaemon
import LibC

exit(DaemonProgram.main())
