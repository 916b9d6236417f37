/** What a machine may report to its hub, through the hub itself. */
import { expect, it } from 'vitest';
import { SITE_STATUS_HEADER } from '../../../shared/agents/site-status.ts';
import type { HttpRequest } from '../../../shared/kubernetes/http.ts';
import { memoryItemStore } from '../../../shared/store/memory/item-store.ts';
import { apiInMemory, NODES, node, pod, podsIn, STRATEGIC } from '../../../test/support/api-in-memory.ts';
import { changeSignals } from '../../watches/change-signals.ts';
import { ForwardFault } from '../cluster-connection.ts';
import { composeHub } from '../compose-hub.ts';
import type { Link } from '../replica.ts';

const PODS = podsIn('default');

/** A hub over a copy with two nodes, each with a pod. What is passed is not received by anybody: 503. */
async function hubOfTwoNodes() {
  const items = memoryItemStore();
  const cluster = apiInMemory({ items });
  for (const name of ['n1', 'n2']) {
    await cluster.send('POST', NODES, { body: node(name) });
    const made = await cluster.send('POST', PODS, {
      body: pod(`p-${name}`, { spec: { nodeName: name, containers: [{ name: 'c', image: 'i' }] } }),
    });
    expect(made.code).toBe(201);
  }
  const clock = { nowMs: cluster.nowMs };
  let link: Link = { kind: 'down', sinceMs: 0, why: 'cut', hasFailed: true };
  const users: Readonly<Record<string, readonly string[]>> = {
    'system:node:n1': ['system:nodes'],
    ada: ['system:masters'],
  };
  const hub = composeHub({
    ...{ items, clock, pause: async () => {}, families: () => [], checks: [], signals: changeSignals() },
    replica: {
      ...{ holds: () => true, versionClock: clock, clusterId: () => 'test', isPart: () => false },
      link: () => link,
      caughtUp: async () => true,
      version: () => Number.MAX_SAFE_INTEGER,
    },
    connection: {
      async send({ body }) {
        const { token } = (JSON.parse(body!.toString()) as { spec: { token: string } }).spec;
        const user = { username: token, groups: [...users[token]!, 'system:authenticated'] };
        const review = { status: { authenticated: true, user } };
        return { status: 201, headers: {}, body: Buffer.from(JSON.stringify(review)) };
      },
      forward: async () => {
        throw new ForwardFault('passed', { cause: undefined, wasSent: false });
      },
      stop: () => {},
    },
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
    meter: { add: () => {} },
  });
  const send = async (method: string, path: string, user: string, more: Partial<HttpRequest> = {}) => {
    const request: HttpRequest = {
      ...{ method, path, query: new URLSearchParams(), sourceIp: '192.0.2.1', body: Buffer.alloc(0) },
      ...more,
      headers: { authorization: `Bearer ${user}`, ...more.headers },
    };
    const { head } = await hub.serve(request, new AbortController().signal);
    return { code: head.status, body: JSON.parse(String(head.body)) };
  };
  // The hub knows both tokens from before the cut.
  link = { kind: 'up' };
  for (const user of Object.keys(users)) await send('GET', `${NODES}/n1`, user);
  link = { kind: 'down', sinceMs: clock.nowMs(), why: 'cut', hasFailed: true };
  return {
    send,
    restore() {
      link = { kind: 'up' };
    },
    report: async (path: string, body: object, { user = 'system:node:n1', forSite = true } = {}) => {
      const site = forSite ? { [SITE_STATUS_HEADER]: '1' } : {};
      const headers = { 'content-type': STRATEGIC, ...site };
      const { code } = await send('PATCH', path, user, { headers, body: Buffer.from(JSON.stringify(body)) });
      return code;
    },
    statusOf: async (path: string) => (await send('GET', path, 'ada')).body.status,
  };
}

const FAILED = { status: { phase: 'Failed', message: 'out of memory' } };

it('shows what a machine reports of itself and its pods, and accepts nothing but the status', async () => {
  const { report, statusOf, send } = await hubOfTwoNodes();
  expect(await report(`${PODS}/p-n1/status`, FAILED)).toBe(202);
  expect(await statusOf(`${PODS}/p-n1`)).toMatchObject(FAILED.status);
  expect((await send('GET', PODS, 'ada')).body.items).toMatchObject([FAILED, { status: { phase: 'Pending' } }]);
  const pressure = { type: 'MemoryPressure', status: 'True' };
  const body = { metadata: { labels: { colour: 'red' } }, status: { conditions: [pressure] } };
  expect(await report(`${NODES}/n1/status`, body)).toBe(202);
  expect(await statusOf(`${NODES}/n1`)).toMatchObject({ conditions: [pressure] });
  expect((await send('GET', `${NODES}/n1`, 'ada')).body.metadata.labels).toBeUndefined();
});

it('refuses a machine that speaks of another one, of a pod that is not its own, or of more than the status', async () => {
  const { report, statusOf } = await hubOfTwoNodes();
  expect(await report(`${PODS}/p-n2/status`, FAILED)).toBe(403);
  expect(await report(`${NODES}/n2/status`, { status: { phase: 'Failed' } })).toBe(403);
  // A pod that says of itself that it is bound to the machine.
  expect(await report(`${PODS}/p-n2/status`, { ...FAILED, spec: { nodeName: 'n1' } })).toBe(403);
  expect(await report(`${PODS}/absent/status`, FAILED)).toBe(404);
  expect(await report(`${PODS}/p-n1/status`, { ...FAILED, metadata: { uid: 'another' } })).toBe(409);
  expect(await report(`${PODS}/p-n1/status`, { metadata: { labels: { a: 'b' } }, ...FAILED })).toBe(403);
  expect(await report(`${PODS}/p-n1`, FAILED)).toBe(503);
  expect(await report(`${PODS}/p-n1/status`, FAILED, { user: 'ada' })).toBe(403);
  for (const name of ['p-n1', 'p-n2']) expect(await statusOf(`${PODS}/${name}`)).toMatchObject({ phase: 'Pending' });
});

it('passes a status without the header, and accepts none while the cluster can be reached', async () => {
  const { report, restore, statusOf } = await hubOfTwoNodes();
  expect(await report(`${PODS}/p-n1/status`, FAILED, { forSite: false })).toBe(503);
  restore();
  expect(await report(`${PODS}/p-n1/status`, FAILED)).toBe(409);
  expect(await statusOf(`${PODS}/p-n1`)).toMatchObject({ phase: 'Pending' });
});

it('shows two reports at once of one pod in their order', async () => {
  const { report, statusOf } = await hubOfTwoNodes();
  const phases = ['Running', 'Failed', 'Running', 'Succeeded'];
  const codes = await Promise.all(phases.map((phase) => report(`${PODS}/p-n1/status`, { status: { phase } })));
  expect(codes).toEqual([202, 202, 202, 202]);
  expect(await statusOf(`${PODS}/p-n1`)).toMatchObject({ phase: 'Succeeded' });
});
