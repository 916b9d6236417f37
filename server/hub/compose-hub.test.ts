/** Which requests the copy must not answer, because it is not complete. */
import { expect, it, onTestFinished } from 'vitest';
import type { HttpRequest } from '../../shared/kubernetes/http.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { changeSignals } from '../watches/change-signals.ts';
import { ForwardFault } from './cluster-connection.ts';
import { composeHub } from './compose-hub.ts';
import type { SiteRescheduling } from './permits/site-rescheduling.ts';
import type { Link } from './replica.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';

/** Whether the copy of a hub has what the cluster has within two seconds. */
let isCaughtUp = true;
let link: Link = { kind: 'up' };
/** Of the answers of the last hub. */
let warnings: string[] = [];

/** The cluster knows one user, and does not receive what is passed: that is answered 503. */
function hub(
  user: object,
  holds: (resource: string) => boolean,
  items: ItemStore = memoryItemStore(),
  isPart: (resource: string) => boolean = () => false,
) {
  const serve = composed(user, { holds, isPart, items });
  return async (path: string, query = ''): Promise<number> => {
    const { status, headers } = await serve({ path, query: new URLSearchParams(query) });
    warnings.push(headers['warning'] ?? '');
    return status;
  };
}

function composed(
  user: object,
  {
    site,
    items = memoryItemStore(),
    ...held
  }: {
    readonly holds: (resource: string) => boolean;
    readonly isPart: (resource: string) => boolean;
    readonly items?: ItemStore;
    readonly site?: SiteRescheduling;
  },
) {
  const clock = { nowMs: () => NOW_MS };
  const review = { status: { authenticated: true, user } };
  warnings = [];
  const { serve } = composeHub({
    ...{ items, clock, pause: async () => {}, families: () => [], checks: [] },
    signals: changeSignals(),
    replica: {
      ...{ ...held, versionClock: clock, clusterId: () => 'test' },
      link: () => link,
      version: () => 1_000,
      caughtUp: async () => isCaughtUp,
    },
    connection: {
      send: async () => ({ status: 201, headers: {}, body: Buffer.from(JSON.stringify(review)) }),
      forward: async () => {
        throw new ForwardFault('passed', { cause: undefined, wasSent: false });
      },
      stop: () => {},
    },
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
    meter: { add: () => {} },
    ...(site !== undefined && { site }),
  });
  return async (request: Pick<HttpRequest, 'path'> & Partial<HttpRequest>) => {
    const { headers, ...others } = request;
    const whole: HttpRequest = {
      ...{ method: 'GET', query: new URLSearchParams(), sourceIp: '192.0.2.1', body: Buffer.alloc(0), ...others },
      headers: { authorization: 'Bearer token', ...headers },
    };
    return (await serve(whole, new AbortController().signal)).head;
  };
}

it('leaves a refusal to the cluster while the pods that may allow the request are not held', async () => {
  const user = { username: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] };
  const path = `${CONFIG_MAPS}/c`;
  const watch = ['watch=1&fieldSelector=metadata.name%3Dc'] as const;
  const complete = hub(user, () => true);
  expect([await complete(path), await complete(CONFIG_MAPS, ...watch)]).toEqual([403, 403]);
  for (const missing of ['pods', 'persistentvolumes']) {
    const status = hub(user, (resource) => resource !== missing);
    expect([await status(path), await status(CONFIG_MAPS, ...watch)]).toEqual([503, 503]);
  }
});

it('asks the cluster who a client is while it is copied for the first time, and not after a read has failed', async () => {
  const user = { username: 'ada', groups: ['system:masters'] };
  const beginning = { kind: 'down', sinceMs: NOW_MS, why: 'it was not read', hasFailed: false } as const;
  onTestFinished(() => {
    link = { kind: 'up' };
  });
  link = beginning;
  expect(await hub(user, () => true)(CONFIG_MAPS)).toBe(200);
  link = { ...beginning, hasFailed: true };
  expect(await hub(user, () => true)(CONFIG_MAPS)).toBe(503);
});

it('does not answer a list from rows that are deleted while it is read', async () => {
  const user = { username: 'ada', groups: ['system:masters'] };
  const items = memoryItemStore();
  let isHeld = true;
  const dropping: ItemStore = {
    ...items,
    query(request) {
      isHeld = false;
      return items.query(request);
    },
  };
  expect(await hub(user, () => true)(CONFIG_MAPS)).toBe(200);
  expect(await hub(user, (resource) => resource !== 'configmaps' || isHeld, dropping)(CONFIG_MAPS)).toBe(503);
});

it('says that a list is of its site alone, and leaves to the cluster what its part does not have', async () => {
  const user = { username: 'ada', groups: ['system:masters'] };
  const whole = hub(user, () => true);
  expect([await whole(CONFIG_MAPS), await whole(`${CONFIG_MAPS}/c`)]).toEqual([200, 404]);
  expect(warnings).toEqual(['', '']);
  const part = hub(
    user,
    () => true,
    memoryItemStore(),
    (resource) => resource === 'configmaps',
  );
  expect([await part(CONFIG_MAPS), await part(`${CONFIG_MAPS}/c`)]).toEqual([200, 503]);
  expect(warnings[0]).toBe('199 nodekeeper "this hub has only the configmaps of the nodes of its site"');
});

it('waits for a version that its copy does not have, and answers 504 as upstream after that', async () => {
  const read = hub({ username: 'ada', groups: ['system:masters'] }, () => true);
  const newer = `resourceVersion=${(NOW_MS + 30_000) * 1_000}`;
  isCaughtUp = false;
  expect([await read(CONFIG_MAPS, 'resourceVersion=1000'), await read(CONFIG_MAPS, 'resourceVersion=0')]).toEqual([
    200, 200,
  ]);
  expect([await read(CONFIG_MAPS, newer), await read(`${CONFIG_MAPS}/c`, newer)]).toEqual([504, 504]);
  expect(await read(CONFIG_MAPS, 'resourceVersion=x')).toBe(400);
  isCaughtUp = true;
  expect([await read(CONFIG_MAPS, newer), await read(`${CONFIG_MAPS}/c`, newer)]).toEqual([200, 404]);
});

it('permits pods of a site only to the machine that asks for itself', async () => {
  const asked: unknown[] = [];
  const site: SiteRescheduling = {
    permit: async (...asks) => {
      asked.push(asks);
      return { hub: 'hub', permitted: ['u1'], copies: [], withdrawn: [], released: ['u2'] };
    },
    onRead: () => {},
    look: async () => {},
  };
  const ask = async (user: object, body: object | string, has: object = { site }, more: Partial<HttpRequest> = {}) => {
    const serve = composed(user, { holds: () => true, isPart: () => false, ...has });
    const headers = { 'content-type': 'application/json' };
    const path = '/apis/nodekeeper.dev/v1alpha1/sitepermits';
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const answer = await serve({ method: 'POST', path, headers, body: Buffer.from(text), ...more });
    return { status: answer.status, body: JSON.parse(String(answer.body)) };
  };
  const node = { username: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] };
  expect(await ask(node, { released: ['u2'], nodeName: 'n2' })).toMatchObject({
    status: 200,
    body: { hub: 'hub', permitted: ['u1'], released: ['u2'] },
  });
  expect(asked).toEqual([['n1', { released: ['u2'], stopped: [] }]]);
  for (const username of ['ada', 'system:node:', 'system:serviceaccount:kube-system:n1']) {
    // Nothing of the body is read.
    expect(await ask({ username, groups: ['system:masters', 'system:authenticated'] }, '{')).toMatchObject({
      status: 403,
      body: { kind: 'Status', message: expect.stringContaining('only a node asks for permits') },
    });
  }
  expect(await ask(node, '{')).toMatchObject({ status: 400, body: { kind: 'Status' } });
  expect((await ask(node, { released: Array.from({ length: 1_001 }, String) })).status).toBe(400);
  expect((await ask(node, {}, { site }, { headers: { 'content-type': 'text/plain' } })).status).toBe(415);
  // A machine asks it again after an hour (agent/app/site-permits.ts).
  expect(await ask(node, {}, {})).toMatchObject({ status: 404, body: { kind: 'Status', reason: 'NotFound' } });
  expect(asked).toHaveLength(1);
});
