import { clientOptionsFrom, dynamoDbClient } from '../../shared/adapters/dynamodb/client.ts';
import { dynamoDbUpdater } from '../../shared/adapters/dynamodb/update-item.ts';
import { systemClock, systemRandom } from '../../shared/adapters/system/clock.ts';
import { staticTokenAuthenticator } from '../../shared/adapters/tokens/static-tokens.ts';
import { serveHeartbeat } from '../../shared/app/renew-lease.ts';
import { loadHeartbeatConfig } from '../../shared/config/heartbeat-environment.ts';
import { log } from '../../shared/observability/logger.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export function composeHeartbeat(environment: Environment) {
  const config = loadHeartbeatConfig(environment);
  return serveHeartbeat({
    items: dynamoDbUpdater({
      client: dynamoDbClient(clientOptionsFrom(environment)),
      tables: { health: config.tables.health },
      random: systemRandom.fraction,
    }),
    authenticator: staticTokenAuthenticator(config.staticTokens),
    clock: systemClock,
    random: systemRandom,
    log,
  });
}
