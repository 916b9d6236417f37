import { expect, it } from 'vitest';
import { answered, refused, silentLog, timedOut } from '../../test/support/agent-api.ts';
import { SteppedTime } from '../../test/support/stepped-time.ts';
import type { KubeAnswer, KubeRequest } from '../ports/kube-api.ts';
import { SiteStatuses } from './site-statuses.ts';

const PATH = '/api/v1/namespaces/default/pods/p/status';
const status = (phase: string): KubeRequest => ({ method: 'PATCH', path: PATH, body: { status: { phase } } });
/** A request to a cluster that cannot be reached ends after this time. Milliseconds. */
const CLUSTER_TIMEOUT_MS = 10_000;

function site() {
  const time = new SteppedTime(0);
  const stop = new AbortController();
  const state = { cluster: undefined as KubeAnswer | undefined, hub: answered(202) as KubeAnswer, hubNeedsMs: 0 };
  const atHub: [phase: string, atMs: number][] = [];
  const atCluster: string[] = [];
  const phaseOf = ({ body, method }: KubeRequest) =>
    method === 'GET' ? 'read' : (body as { status: { phase: string } }).status.phase;
  const hub = {
    async send(request: KubeRequest) {
      atHub.push([phaseOf(request), time.monotonicMs()]);
      await time.sleep(state.hubNeedsMs);
      return state.hub;
    },
    reconnect() {},
  };
  const api = {
    async send(request: KubeRequest) {
      atCluster.push(phaseOf(request));
      if (state.cluster !== undefined) return state.cluster;
      await time.sleep(CLUSTER_TIMEOUT_MS);
      return timedOut;
    },
    reconnect: () => void atCluster.push('reconnect'),
  };
  const warnings: string[] = [];
  const log = { ...silentLog, warn: (message: string) => void warnings.push(message) };
  const statuses = new SiteStatuses({ nodeName: 'n1', hub, time, log, stop: stop.signal });
  const watched = statuses.watching(api);
  return {
    statuses,
    stop,
    time,
    state,
    atHub,
    atCluster,
    watched,
    warnings,
    send: (request: KubeRequest) => watched.send(request),
  };
}

it('sends the hub a status that the cluster does not answer within a second, and waits for the cluster all the same', async () => {
  const { time, send, atHub, atCluster } = site();
  let answer: KubeAnswer | undefined;
  void send(status('Failed')).then((given) => {
    answer = given;
  });
  await time.pass(2_000);
  expect(atHub).toEqual([['Failed', 1_000]]);
  expect(answer).toBeUndefined();
  await time.pass(CLUSTER_TIMEOUT_MS);
  expect([answer, atCluster]).toEqual([timedOut, ['Failed']]);
});

it('sends the hub nothing that the cluster answers, and no other request', async () => {
  const { time, send, atHub, state } = site();
  for (const cluster of [answered(200), refused(404, 'NotFound')]) {
    state.cluster = cluster;
    expect(await send(status('Running'))).toBe(cluster);
  }
  state.cluster = timedOut;
  await send({ method: 'GET', path: '/api/v1/nodes/n1' });
  await time.pass(60_000);
  expect(atHub).toEqual([]);
});

it('repeats at a hub that has not noticed the cut yet, until the cluster has the status', async () => {
  const { time, send, atHub, state } = site();
  state.cluster = timedOut;
  state.hub = refused(409, 'Conflict');
  await send(status('Running'));
  await time.pass(3_000);
  await send(status('Failed'));
  await time.pass(1_000);
  expect(atHub).toEqual([
    ['Running', 0],
    ['Running', 2_000],
    ['Failed', 4_000],
  ]);
  state.cluster = answered(200);
  await send(status('Failed'));
  await time.pass(600_000);
  expect(atHub).toHaveLength(3);
});

it('gives up after a minute, and at once when the hub refuses', async () => {
  const { time, send, atHub, state } = site();
  state.cluster = timedOut;
  state.hub = answered(503);
  await send(status('Failed'));
  await time.pass(3_600_000);
  expect(atHub).toHaveLength(30);
  state.hub = refused(403, 'Forbidden');
  await send(status('Failed'));
  await time.pass(3_600_000);
  expect(atHub).toHaveLength(31);
});

it('sends the same status once per minute: the hub may have been restarted', async () => {
  const { time, send, atHub, state } = site();
  state.cluster = timedOut;
  for (let index = 0; index < 13; index += 1) {
    await send(status('Failed'));
    await time.pass(10_000);
  }
  expect(atHub.map(([, atMs]) => atMs)).toEqual([0, 60_000, 120_000]);
});

it('reads its Node at the hub each hour, and every 10 s until it is answered: the hub then knows its keys', async () => {
  const { statuses, stop, time, atHub, state } = site();
  state.hub = timedOut;
  const running = statuses.run(stop.signal);
  await time.pass(10_000);
  state.hub = answered(200);
  await time.pass(2 * 3_600_000);
  expect(atHub.map(([what, atMs]) => `${what} ${atMs / 1_000}`)).toEqual(['read 0', 'read 10', 'read 20', 'read 3620']);
  stop.abort();
  await running;
});

it('is the same client of the cluster for its user', () => {
  const { watched, atCluster } = site();
  watched.reconnect();
  expect(atCluster).toEqual(['reconnect']);
});

it('sends a status that comes while the hub has an older one, whatever the hub answers to that', async () => {
  const { time, send, atHub, state } = site();
  state.cluster = timedOut;
  state.hubNeedsMs = 1_000;
  await send(status('Running'));
  await time.pass(500);
  await send(status('Failed'));
  await time.pass(10_000);
  expect(atHub.map(([phase]) => phase)).toEqual(['Running', 'Failed']);
});

it('sends nothing that cannot be prepared, and nothing once the agent stops', async () => {
  const { statuses, time, stop, atHub, warnings } = site();
  const fault = new Error('no node');
  statuses.beside(Promise.resolve(timedOut), PATH, () => Promise.reject(fault));
  await time.pass(0);
  expect(warnings).toEqual(['a status could not be prepared for the hub of the site']);
  stop.abort();
  statuses.beside(Promise.resolve(timedOut), PATH, async () => status('Failed'));
  statuses.beside(Promise.reject(new Error('a bug')), PATH, async () => status('Failed'));
  await time.pass(0);
  expect(atHub).toEqual([]);
});
