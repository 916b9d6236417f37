/** Composes what the API needs over the account's tables. The api and watch functions use it. */
import { setTimeout as pause } from 'node:timers/promises';
import { clientOptionsFrom, dynamoDbClient } from '../shared/adapters/dynamodb/client.ts';
import { dynamoDbItemStore } from '../shared/adapters/dynamodb/item-store.ts';
import type { DynamoDbOptions } from '../shared/adapters/dynamodb/request.ts';
import { gzip } from '../shared/adapters/gzip/gzip.ts';
import type { RequestOptions } from '../shared/api/request-dependencies.ts';
import type { Policy } from '../shared/domain/policy.ts';
import { log } from '../shared/observability/logger.ts';
import type { Environment } from './controllers.ts';
import { systemClock, systemRandom } from './system-clock.ts';

export const composeServing = (
  environment: Environment,
  { tables, policy }: { readonly tables: DynamoDbOptions['tables']; readonly policy: Policy },
) =>
  ({
    items: dynamoDbItemStore({
      client: dynamoDbClient(clientOptionsFrom(environment)),
      tables,
      random: systemRandom.fraction,
    }),
    clock: systemClock,
    random: systemRandom,
    pause,
    log,
    policy,
    gzip,
  }) satisfies Omit<RequestOptions, 'authenticator'>;
