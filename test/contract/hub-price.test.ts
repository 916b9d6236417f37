/**
 * What a hub costs on AWS, per month: its requests and their units, counted in memory, with list prices. docs/hub.md
 * has the table; `WRITE_DOCS=1` writes it.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { PRICES, SECONDS_A_MONTH } from '../../shared/cost/prices.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { followedCluster } from '../support/followed-cluster.ts';
import { BY_HTTP_API, BY_URL } from '../support/request-price.ts';

const DOC = fileURLToPath(new URL('../../docs/hub.md', import.meta.url));
const HEAD =
  '| changes of pods | requests | read units | write units | dollars per month | through `ApiUrl` |\n|---|---|---|---|---|---|\n';
const PODS = '/api/v1/namespaces/default/pods';
/** Until every kind but that of the changes counts as quiet. */
const SETTLE_MS = 660_000;
const COUNTED_SECONDS = 600;

/** `changeSeconds` undefined: nothing changes. Per month. */
async function priceOf(changeSeconds: number | undefined) {
  const cluster = await followedCluster();
  await cluster.forbid(['secrets']);
  await cluster.api.send('POST', PODS, {
    body: { metadata: { name: 'p' }, spec: { containers: [{ name: 'main', image: 'registry.example/app:1' }] } },
  });
  const followed = await cluster.follow(memoryItemStore());
  let changes = 0;
  const pass = async (seconds: number): Promise<void> => {
    const stepSeconds = changeSeconds ?? seconds;
    for (let passed = 0; passed < seconds; passed += stepSeconds) {
      if (changeSeconds !== undefined) {
        changes += 1;
        const body = { metadata: { labels: { change: String(changes) } } };
        await cluster.api.send('PATCH', `${PODS}/p`, { body, contentType: 'application/merge-patch+json' });
      }
      await followed.advance(stepSeconds * 1_000);
    }
  };
  await pass(SETTLE_MS / 1_000);
  const before = { requests: cluster.requests(), ...cluster.units() };
  await pass(COUNTED_SECONDS);
  const units = cluster.units();
  await followed.replica.stop();
  const month = SECONDS_A_MONTH / COUNTED_SECONDS;
  const requests = (cluster.requests() - before.requests) * month;
  const readUnits = (units.readUnits - before.readUnits) * month;
  const writeUnits = (units.writeUnits - before.writeUnits) * month;
  const unitsDollars = readUnits * PRICES.readUnit + writeUnits * PRICES.writeUnit;
  const dollarsOf = (request: number): number => requests * request + unitsDollars;
  return { requests, readUnits, writeUnits, dollars: dollarsOf(BY_HTTP_API), byUrlDollars: dollarsOf(BY_URL) };
}

it('costs what docs/hub.md says', { timeout: 60_000 }, async () => {
  const cases = [
    ['none', undefined],
    ['one each 12 s', 12],
    ['one each 10 s', 10],
    ['one each 2.5 s', 2.5],
  ] as const;
  const thousands = (value: number): string => `${Math.round(value / 1_000).toLocaleString('en-US')} k`;
  let rows = '';
  for (const [name, seconds] of cases) {
    const { requests, readUnits, writeUnits, dollars, byUrlDollars } = await priceOf(seconds);
    const counts = [requests, readUnits, writeUnits].map(thousands).join(' | ');
    rows += `| ${name} | ${counts} | ${dollars.toFixed(2)} | ${byUrlDollars.toFixed(2)} |\n`;
  }
  const text = readFileSync(DOC, 'utf8');
  const from = text.indexOf(HEAD) + HEAD.length;
  const end = from + text.slice(from).search(/^(?!\|)/m);
  if (process.env['WRITE_DOCS'] === '1') writeFileSync(DOC, text.slice(0, from) + rows + text.slice(end));
  else expect(text.slice(from, end)).toBe(rows);
});
