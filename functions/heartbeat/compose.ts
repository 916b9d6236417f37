import { bearerSchemes, staticTokenAuthenticator } from '../../shared/access/bearer.ts';
import { nodeKeys } from '../../shared/access/node-key-store.ts';
import { nodeTokens } from '../../shared/access/node-tokens.ts';
import { probeKeys } from '../../shared/access/process-key-store.ts';
import { refusalsAdded } from '../../shared/access/refusal-store.ts';
import { refusedRequests } from '../../shared/access/refused-requests.ts';
import { HEARTBEAT_LIMITS, requestThrottle, systemBusyMs } from '../../shared/access/request-throttle.ts';
import type { Environment } from '../../shared/aws/controllers.ts';
import { clientOptionsFrom } from '../../shared/aws/dynamodb-client.ts';
import { systemClock, systemRandom, systemTimeLimit } from '../../shared/clock.ts';
import { failedRequests } from '../../shared/kubernetes/log-throttle.ts';
import { log } from '../../shared/observability/logger.ts';
import { loadHeartbeatConfig } from './environment.ts';
import { leanUpdater } from './lean-updater.ts';
import { sha256Of } from './sha256.ts';
import { serveHeartbeat } from './work.ts';

/**
 * How long a revoked key may still renew the Lease of its node. Each execution environment of this function has a cache
 * of its own. With five minutes most heartbeats of a large fleet find their key in it.
 */
const KEYS_LIVE_MS = 300_000;

/** DynamoDB answers within tens of milliseconds. Two attempts fit the budget. Milliseconds. */
const ATTEMPT_MS = 900;
/** Time of one request. A heartbeat makes two, for key and row of its node, within the function's 7 s. Milliseconds. */
const REQUEST_BUDGET_MS = 2_000;

export function composeHeartbeat(environment: Environment) {
  const { tables, clusterId, staticTokens, beatTimes } = loadHeartbeatConfig(environment);
  const items = leanUpdater({
    connection: { ...clientOptionsFrom(environment), requestTimeoutMs: ATTEMPT_MS },
    budgetMs: REQUEST_BUDGET_MS,
    tables,
    nowMs: systemClock.nowMs,
    random: systemRandom.fraction,
  });
  const onRefused = refusedRequests({
    log,
    store: refusalsAdded(items),
    noteFault: failedRequests(log, 'refused heartbeats could not be counted'),
  });
  const throttleOptions = { busyMs: systemBusyMs, onRefused };
  return serveHeartbeat({
    items,
    authenticator: bearerSchemes(
      [
        nodeTokens({
          keys: nodeKeys(items),
          probeKeys: probeKeys(items),
          clusterId,
          keysLiveMs: KEYS_LIVE_MS,
          acceptsBeatTokens: true,
        }),
      ],
      staticTokenAuthenticator(staticTokens),
    ),
    clock: systemClock,
    random: systemRandom,
    startTimeLimit: systemTimeLimit,
    log,
    beatTimes,
    sha256: sha256Of,
    throttle: requestThrottle(HEARTBEAT_LIMITS, throttleOptions),
    batchThrottle: requestThrottle(HEARTBEAT_LIMITS, throttleOptions),
  });
}
