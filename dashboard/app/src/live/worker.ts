// The worker that all windows share.

import { Hub } from "./hub";

const hub = new Hub();
self.addEventListener("connect", (event) => hub.connect((event as MessageEvent).ports[0]!));
