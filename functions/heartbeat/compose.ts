import { clientOptionsFrom } from '../../shared/adapters/dynamodb/client.ts';
import { leanUpdater } from '../../shared/adapters/dynamodb/lean-updater.ts';
import { bearerSchemes } from '../../shared/adapters/tokens/bearer.ts';
import { nodeTokens } from '../../shared/adapters/tokens/node-tokens.ts';
import { sha256Of } from '../../shared/adapters/tokens/sha256.ts';
import { staticTokenAuthenticator } from '../../shared/adapters/tokens/static-tokens.ts';
import { loadHeartbeatConfig } from '../../shared/config/heartbeat-environment.ts';
import { serveHeartbeat } from '../../shared/heartbeat/renew-lease.ts';
import { failedRequests } from '../../shared/kube/request/log-throttle.ts';
import { refusedRequests } from '../../shared/kube/request/refused-requests.ts';
import { HEARTBEAT_LIMITS, requestThrottle } from '../../shared/kube/request/request-throttle.ts';
import { log } from '../../shared/observability/logger.ts';
import { nodeKeys } from '../../shared/store/node-key-store.ts';
import { probeKeys } from '../../shared/store/process-key-store.ts';
import { refusalsAdded } from '../../shared/store/refusal-store.ts';
import type { Environment } from '../controllers.ts';
import { systemBusyMs, systemClock, systemRandom, systemTimeLimit } from '../system-clock.ts';

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
