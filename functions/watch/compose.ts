import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { clientOptionsFrom, dynamoDbClient } from '../../shared/adapters/dynamodb/client.ts';
import { dynamoDbItemStore } from '../../shared/adapters/dynamodb/item-store.ts';
import { gzip } from '../../shared/adapters/gzip/gzip.ts';
import { systemClock, systemRandom } from '../../shared/adapters/system/clock.ts';
import { staticTokenAuthenticator } from '../../shared/adapters/tokens/static-tokens.ts';
import { watchTickets } from '../../shared/adapters/tokens/watch-tickets.ts';
import { readYaml } from '../../shared/adapters/yaml/read-yaml.ts';
import { serveWatch } from '../../shared/app/api/serve-watch.ts';
import { loadConfig, watchConfig } from '../../shared/config/environment.ts';
import { log } from '../../shared/observability/logger.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export function composeWatch(environment: Environment) {
  const config = loadConfig(watchConfig, environment);
  return serveWatch({
    items: dynamoDbItemStore({
      client: dynamoDbClient(clientOptionsFrom(environment)),
      tables: config.tables,
      random: systemRandom.fraction,
    }),
    authenticator: staticTokenAuthenticator(config.staticTokens),
    tickets: watchTickets(config.ticketSecret),
    clock: systemClock,
    random: systemRandom,
    pause,
    log,
    policy: config.policy,
    hash: (text) => createHash('sha256').update(text).digest('hex').slice(0, 32),
    readYaml,
    gzip,
  });
}
