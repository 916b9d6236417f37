/** Figures in the documentation that follow from the template and the price list. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Capacity } from '../../cdk/lib/capacity.ts';
import { requestLimits } from '../../cdk/lib/cluster-options.ts';
import { reservedConcurrencyOf } from '../../cdk/lib/concurrency.ts';
import { repositoryRoot } from '../../cdk/lib/function-names.ts';
import { routeLimits } from '../../cdk/lib/http-api.ts';
import type { NodekeeperClusterProps } from '../../cdk/lib/nodekeeper-cluster.ts';
import { HELD_WATCH_DOLLARS_PER_HOUR } from '../../shared/domain/cost/held-watch.ts';
import { PRICE_LIST, SECONDS_PER_DAY } from '../../shared/domain/cost/prices.ts';
import { defaultPolicy } from '../../shared/domain/policy.ts';
import { synthesise } from './synthesised.ts';

const docs = (path: string): string => readFileSync(join(repositoryRoot, 'docs', path), 'utf8').replaceAll(/\s+/g, ' ');
const { httpApiRequest, lambdaRequest } = PRICE_LIST.prices;

describe('the documented cost', () => {
  it.each(['architecture.md', 'console.md'])('of a held watch in %s is that of the function and its price', (page) => {
    expect(docs(page)).toContain(`$${HELD_WATCH_DOLLARS_PER_HOUR.toFixed(4)} per hour`);
  });

  it('of anonymous load follows from the limits of the routes and of the function watch', () => {
    const perRequest = httpApiRequest.dollars + lambdaRequest.dollars;
    for (const nodesMax of [1_000, 10_000]) {
      const { heartbeats, others } = routeLimits(requestLimits({ nodesMax }, defaultPolicy));
      const perSecond = 3 * heartbeats.rateLimit + others.rateLimit;
      const dollars = Math.round(perSecond * SECONDS_PER_DAY * perRequest);
      expect(docs('cost.md')).toContain(`| ${perSecond.toLocaleString('en-US')} | $${dollars} |`);
    }
    const { watch = 0 } = reservedConcurrencyOf({}, defaultPolicy);
    // Lambda accepts ten requests per second for each reserved execution.
    const requests = 10 * watch * SECONDS_PER_DAY * lambdaRequest.dollars;
    const dollars = Math.round(requests + 24 * watch * HELD_WATCH_DOLLARS_PER_HOUR);
    expect(docs('cost.md')).toContain(`| ${10 * watch} | $${dollars} |`);
  });
});

it('the documented size of the stack is that of the template', { timeout: 120_000 }, () => {
  const everything: NodekeeperClusterProps = { capacity: Capacity.provisioned(1_000), alarmEmail: 'a@example.com' };
  const templates = {
    standard: synthesise(),
    longPoll: synthesise({ policy: { watchMode: 'longPoll' } }),
    provisioned: synthesise({ capacity: Capacity.provisioned(1_000) }),
    everything: synthesise({ ...everything, policy: { heartbeatUrl: 'on' } }),
  };
  const count = (name: keyof typeof templates): number =>
    Object.keys(templates[name].toJSON()['Resources'] as object).length;
  expect(docs('operations/quotas.md')).toContain(
    `the stack has ${count('standard')} of 500 resources: ${count('longPoll')} with \`watchMode: longPoll\`, ` +
      `${count('provisioned')} with provisioned capacity, ${count('everything')} with alarms by mail and ` +
      '`heartbeatUrl: on` as well.',
  );
  const kilobytes = Math.max(
    ...Object.values(templates).map((each) => JSON.stringify(each.toJSON(), null, 1).length / 1_000),
  );
  expect(docs('operations/quotas.md')).toContain(`at most ${Math.ceil(kilobytes / 20) * 20} KB of 1 MB`);
});
