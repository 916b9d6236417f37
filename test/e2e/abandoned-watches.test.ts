/**
 * Watches that their clients abandon, in an account with the limit of a new one: 10 concurrent executions. Lambda does
 * not end a streamed response when its client disconnects, so each of them holds an execution. Heartbeats and ticks
 * must not notice.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { startLocal } from '../../aws-local/runtime.ts';
import { createApiClient } from '../../demo/fleet/api-client.ts';
import { startFleet } from '../../demo/fleet/fleet.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import { until } from '../support/until.ts';

const ABANDONED = 20;
const NODES = 2;
const WATCHES = 2;
/** Shorter than the default: the test waits for the end of the watches. */
const QUIET_SECONDS = 20;
/** What docs/operations/quotas.md recommends for the limit of 10. */
const POLICY: Partial<Policy> = {
  concurrentWatchesMax: WATCHES,
  watchQuietSeconds: QUIET_SECONDS,
  beatIntervalSeconds: 1,
};
/** Of each function that must not notice the watches, while all executions are in use for a moment. */
const THROTTLES_MAX = 2;
/** The limit of each wait is generous: only a fault reaches it, also on a busy machine. Milliseconds. */
const WITHIN_MS = 120_000;

/** Behaves as an interrupted `kubectl get nodes -w`: follows the redirect, reads the head, and disconnects. */
function abandonWatch(url: string, ca: string, token: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { ca, agent: false, headers: { authorization: `Bearer ${token}` } }, (response) => {
      const { statusCode = 0, headers } = response;
      sent.destroy();
      if (statusCode === 307) abandonWatch(String(headers.location), ca, token).then(resolve, reject);
      else resolve(statusCode);
    });
    sent.on('error', reject);
    sent.end();
  });
}

it('20 abandoned watches refuse no heartbeat and no tick, and their executions end', { timeout: 420_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'nk-abandoned-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const policyFile = join(folder, 'policy.yaml');
  writeFileSync(policyFile, stringify(POLICY));
  const system = await startLocal({ policyFile, accountConcurrency: 10, print: () => {} });
  onTestFinished(() => system.stop());
  const { url, caPem: ca, adminToken, fleetToken } = system;
  const fleet = startFleet({ url, ca, token: fleetToken, nodes: NODES, beatIntervalSeconds: 1, followsProfile: false });
  onTestFinished(() => fleet.stop());
  await until(() => fleet.status().beats >= NODES, { withinMs: WITHIN_MS, what: 'a heartbeat of every node' });
  const before = await system.counters();

  const answers: number[] = [];
  const openedMs = performance.now();
  for (let count = 0; count < ABANDONED; count += 1) {
    answers.push(await abandonWatch(`${url}/api/v1/nodes?watch=1`, ca, adminToken));
  }
  const openingSeconds = (performance.now() - openedMs) / 1_000;
  const beatsBefore = fleet.status().beats;
  await until(() => fleet.status().beats >= beatsBefore + 5 * NODES, {
    withinMs: WITHIN_MS,
    what: 'five more beats each',
  });
  const during = await system.counters();
  const startedMs = performance.now();
  await until(async () => (await heldWatches(system)) === 0, { withinMs: WITHIN_MS, what: 'the end of every watch' });
  const after = await system.counters();

  const throttles = Object.entries(after.functions).map(([name, fn]): [string, number] => [
    name,
    fn.throttles - (before.functions[name]?.throttles ?? 0),
  ]);
  console.log(
    JSON.stringify({
      accountConcurrency: 10,
      abandoned: ABANDONED,
      accepted: answers.filter((status) => status === 200).length,
      refusedWith429: answers.filter((status) => status === 429).length,
      beats: fleet.status().beats,
      failedTurns: fleet.status().failedTurns,
      heldWhileBeating: during.concurrency?.inUse,
      mostInUse: after.concurrency?.mostInUse,
      secondsToFree: Math.round((performance.now() - startedMs) / 1_000),
      throttles: Object.fromEntries(throttles),
      dynamodb: after.dynamodb,
    }),
  );
  // On a busy machine the first watches end while the last ones are opened, and others are accepted in their place.
  const accepted = answers.filter((status) => status === 200).length;
  expect(accepted).toBeGreaterThanOrEqual(WATCHES);
  expect(accepted).toBeLessThanOrEqual(WATCHES * (1 + Math.floor(openingSeconds / QUIET_SECONDS)));
  // A busy machine may have all ten executions in use when `api` is asked for the address of a watch: 503, as on AWS.
  const refused = answers.filter((status) => status === 429).length;
  expect(ABANDONED - accepted - refused).toBeLessThanOrEqual(Number(new Map(throttles).get('api')));
  expect(answers.filter((status) => ![200, 429, 503].includes(status))).toEqual([]);
  // The same may happen to a heartbeat or a tick, once in a while. Watches that hold all executions refuse them all.
  for (const name of ['heartbeat', 'node-monitor']) {
    expect(Number(new Map(throttles).get(name)), name).toBeLessThanOrEqual(THROTTLES_MAX);
  }

  const client = createApiClient({ url, ca, token: adminToken, connectionsMax: 1, timeoutMs: 60_000 });
  onTestFinished(() => client.close());
  const list = await client.send({ method: 'GET', path: '/api/v1/nodes' });
  expect(JSON.stringify(list)).not.toContain('node.kubernetes.io/unreachable');
});

const heldWatches = async (system: Awaited<ReturnType<typeof startLocal>>): Promise<number> =>
  (await system.counters()).functions['watch']?.inFlight ?? Number.NaN;
