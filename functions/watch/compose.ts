import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gunzip } from '../../shared/adapters/gzip/gzip.ts';
import { storedGzip } from '../../shared/adapters/gzip/stored-gzip.ts';
import { streamProbe } from '../../shared/adapters/probe/stream-probe.ts';
import { staticTokenAuthenticator } from '../../shared/adapters/tokens/static-tokens.ts';
import { watchTicketVerifier } from '../../shared/adapters/tokens/watch-tickets.ts';
import { serveWatch } from '../../shared/api/watch/serve-watch.ts';
import { loadConfig, watchConfig } from '../../shared/config/environment.ts';
import { meter } from '../../shared/observability/meter.ts';
import { nodeKeys } from '../../shared/store/node-key-store.ts';
import { ticketKeys } from '../../shared/store/process-key-store.ts';
import type { Environment } from '../controllers.ts';
import { composeServing } from '../serving.ts';
import { systemClock } from '../system-clock.ts';

export function composeWatch(environment: Environment) {
  const config = loadConfig(watchConfig, environment);
  const serving = composeServing(environment, config);
  return serveWatch({
    ...serving,
    gunzip,
    gzipFrames: storedGzip,
    meter,
    openProbe: streamProbe({ clock: systemClock }),
    deployment: hashOfThisBundle(),
    authenticator: staticTokenAuthenticator(config.staticTokens),
    tickets: watchTicketVerifier(ticketKeys(serving.items)),
    nodeKeys: nodeKeys(serving.items),
  });
}

/** A deployment with other code is another one. */
const hashOfThisBundle = (): string =>
  createHash('sha256')
    .update(readFileSync(new URL(import.meta.url)))
    .digest('hex')
    .slice(0, 16);
