/** Composes what the API needs over the account's tables. The api and watch functions use it. */
import { setTimeout as pause } from 'node:timers/promises';
import type { RequestOptions } from '../api/request-dependencies.ts';
import { systemClock, systemRandom } from '../clock.ts';
import type { Policy } from '../fleet/policy.ts';
import { gzip } from '../gzip.ts';
import { log } from '../observability/logger.ts';
import type { Environment } from './controllers.ts';
import { clientOptionsFrom, dynamoDbClient } from './dynamodb-client.ts';
import type { DynamoDbOptions } from './dynamodb-request.ts';
import { dynamoDbItemStore } from './dynamodb-store.ts';

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
