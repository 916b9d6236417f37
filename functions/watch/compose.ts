import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { staticTokenAuthenticator } from '../../shared/access/bearer.ts';
import { nodeKeys } from '../../shared/access/node-key-store.ts';
import { ticketKeys } from '../../shared/access/process-key-store.ts';
import { watchTicketVerifier } from '../../shared/access/watch-tickets.ts';
import type { Environment } from '../../shared/aws/controllers.ts';
import { composeServing } from '../../shared/aws/serving.ts';
import { systemClock } from '../../shared/clock.ts';
import { loadConfig, watchConfig } from '../../shared/config/environment.ts';
import { gunzip } from '../../shared/gzip.ts';
import { meter } from '../../shared/observability/meter.ts';
import { storedGzip } from './stored-gzip.ts';
import { streamProbe } from './stream-probe.ts';
import { serveWatch } from './work.ts';

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
