import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { auditLogConnectionFrom, cloudWatchAuditTrail } from '../../shared/adapters/aws-json/put-log-events.ts';
import { clientOptionsFrom, dynamoDbClient } from '../../shared/adapters/dynamodb/client.ts';
import { dynamoDbItemStore } from '../../shared/adapters/dynamodb/item-store.ts';
import { gzip } from '../../shared/adapters/gzip/gzip.ts';
import { systemClock, systemRandom } from '../../shared/adapters/system/clock.ts';
import { bearerSchemes } from '../../shared/adapters/tokens/bearer.ts';
import { bootstrapTokens } from '../../shared/adapters/tokens/bootstrap-tokens.ts';
import { callerIdentityTokens } from '../../shared/adapters/tokens/caller-identity.ts';
import { instanceIdentities } from '../../shared/adapters/tokens/instance-identities.ts';
import { nodeTokens } from '../../shared/adapters/tokens/node-tokens.ts';
import { readPublicKey } from '../../shared/adapters/tokens/public-keys.ts';
import { probeTokenOf, staticTokenAuthenticator } from '../../shared/adapters/tokens/static-tokens.ts';
import { watchTickets } from '../../shared/adapters/tokens/watch-tickets.ts';
import { readYaml } from '../../shared/adapters/yaml/read-yaml.ts';
import { composeApi } from '../../shared/app/api/compose.ts';
import { API_LIMITS } from '../../shared/app/api/request-throttle.ts';
import { redirectWatches } from '../../shared/app/api/watch-redirect.ts';
import { apiConfig, loadConfig } from '../../shared/config/environment.ts';
import { INSTANCE_AGE_SECONDS_MAX } from '../../shared/domain/instance-identity.ts';
import { log } from '../../shared/observability/logger.ts';
import { bootstrapTokenStore } from '../../shared/store/bootstrap-token-store.ts';
import { nodeKeys } from '../../shared/store/node-key-store.ts';

/** How long a revoked key may still open the API. */
const KEYS_LIVE_MS = 60_000;

import { composeCloud } from '../cloud.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export function composeApiFunction(environment: Environment) {
  const config = loadConfig(apiConfig, environment);
  const items = dynamoDbItemStore({
    client: dynamoDbClient(clientOptionsFrom(environment)),
    tables: config.tables,
    random: systemRandom.fraction,
  });
  return composeApi({
    items,
    authenticator: bearerSchemes(
      [
        nodeTokens({ keys: nodeKeys(items), clusterId: config.clusterId, keysLiveMs: KEYS_LIVE_MS }),
        bootstrapTokens(bootstrapTokenStore(items)),
        ...(config.instances === undefined
          ? []
          : [
              instanceIdentities({
                ...config.instances,
                ageSecondsMax: INSTANCE_AGE_SECONDS_MAX,
                publicKey: readFileSync(new URL('instance-identity-key.txt', import.meta.url), 'utf8'),
              }),
            ]),
        callerIdentityTokens({ clusterId: config.clusterId, entries: config.accessEntries }),
      ],
      staticTokenAuthenticator([...config.staticTokens, probeTokenOf(config.probeToken)]),
    ),
    readPublicKey,
    ...(config.instances === undefined
      ? {}
      : { cloud: composeCloud(environment, { clusterId: config.clusterId, ...config.instances }) }),
    clock: systemClock,
    random: systemRandom,
    pause,
    log,
    policy: config.policy,
    hash: (text) => createHash('sha256').update(text).digest('hex').slice(0, 32),
    readYaml,
    gzip,
    auditTrail: cloudWatchAuditTrail(auditLogConnectionFrom(environment, config.auditLog), systemClock.nowMs),
    limits: API_LIMITS,
    ...(config.watches === undefined
      ? {}
      : { answerWatch: redirectWatches(config.watches.url, watchTickets(config.watches.ticketSecret)) }),
  });
}
