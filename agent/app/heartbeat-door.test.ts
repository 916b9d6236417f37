import { beforeEach, describe, expect, it } from 'vitest';
import { LEASE_BATCHES_PATH } from '../../shared/fleet/nodes/lease-batch.ts';
import type { KubeAnswer, KubeApi, KubeRequest } from '../ports/kube-api.ts';
import { leasePath } from '../rules/lease.ts';
import { withHeartbeatDoor } from './heartbeat-door.ts';

const URL = 'https://beats.example';
const BEAT = { method: 'PUT', path: leasePath('n1'), body: {} } as const;

let nowMs: number;
let sent: string[];
/** What the API names in its answers. */
let named: string | undefined;
let atDoor: KubeAnswer;
/** Undefined: 200. */
let atApi: KubeAnswer | undefined;
let api: KubeApi;

const answered = (status: number, url?: string): KubeAnswer => ({
  kind: 'answered',
  status,
  body: {
    kind: status === 200 ? 'Lease' : 'Status',
    metadata: url === undefined ? {} : { annotations: { 'nodekeeper.dev/heartbeat-url': url } },
  },
});
const client = (name: string, answer: (request: KubeRequest) => KubeAnswer): KubeApi => ({
  send: async (request) => {
    sent.push(`${name} ${request.method}`);
    return answer(request);
  },
  reconnect: () => {},
});

beforeEach(() => {
  nowMs = 0;
  sent = [];
  named = URL;
  atDoor = answered(200);
  atApi = undefined;
  api = withHeartbeatDoor({
    api: client('api', () => atApi ?? answered(200, named)),
    open: (url) => client(url, () => atDoor),
    monotonicMs: () => nowMs,
  });
});

async function beats(count: number): Promise<string[]> {
  for (let beat = 0; beat < count; beat += 1) {
    await api.send(BEAT);
    nowMs += 10_000;
  }
  return sent.splice(0);
}

describe('the second way of a heartbeat', () => {
  it('is used after an answer has named it, by renewals alone', async () => {
    expect(await beats(3)).toEqual(['api PUT', `${URL} PUT`, `${URL} PUT`]);
    await api.send({ method: 'GET', path: leasePath('n1') });
    await api.send({ method: 'PUT', path: '/api/v1/nodes/n1/status' });
    expect(sent).toEqual(['api GET', 'api PUT']);
  });

  it('marks the answer to a heartbeat that was sent before: it may be stored', async () => {
    await beats(2);
    atDoor = { kind: 'failed', cause: new Error('no answer') };
    expect(await api.send(BEAT)).toMatchObject({ status: 200, isRepeated: true });
    expect(await api.send(BEAT)).not.toHaveProperty('isRepeated');
  });

  it('is used for the batches of a relay', async () => {
    const batch = { method: 'POST', path: LEASE_BATCHES_PATH, body: {} } as const;
    const annotations = { 'nodekeeper.dev/heartbeat-url': URL };
    atApi = { kind: 'answered', status: 200, body: { kind: 'LeaseBatch', metadata: { annotations }, items: [] } };
    atDoor = { kind: 'answered', status: 200, body: { kind: 'LeaseBatch', items: [] } };
    for (let count = 0; count < 3; count += 1) await api.send(batch);
    expect(sent).toEqual(['api POST', `${URL} POST`, `${URL} POST`]);
  });

  it.each([
    { why: 'no answer', answer: { kind: 'failed', cause: new Error('refused') } as const },
    { why: '429', answer: answered(429) },
    { why: '503', answer: answered(503) },
    {
      why: '403 of AWS, where the URL was deleted or blocked',
      answer: { kind: 'answered', status: 403, body: { Message: 'Forbidden' } } as const,
    },
    { why: '404 without a body', answer: { kind: 'answered', status: 404, body: undefined } as const },
    { why: '200 of a captive portal', answer: { kind: 'answered', status: 200, body: undefined } as const },
  ])('is left for a minute after $why; the heartbeat is sent through the API at once', async ({ answer }) => {
    await beats(1);
    atDoor = answer;
    expect(await beats(1)).toEqual([`${URL} PUT`, 'api PUT']);
    atDoor = answered(200);
    expect(await beats(5)).toEqual(Array.from({ length: 5 }, () => 'api PUT'));
    expect(await beats(1)).toEqual([`${URL} PUT`]);
  });

  it.each([401, 404, 409])('is kept after %i, which the API would answer as well', async (status) => {
    await beats(1);
    atDoor = answered(status);
    expect(await beats(2)).toEqual([`${URL} PUT`, `${URL} PUT`]);
  });

  it('is used again at once while the API fails too', async () => {
    await beats(1);
    atDoor = answered(503);
    atApi = { kind: 'failed', cause: new Error('refused') };
    expect(await beats(1)).toEqual([`${URL} PUT`, 'api PUT']);
    atDoor = answered(200);
    expect(await beats(3)).toEqual([`${URL} PUT`, `${URL} PUT`, `${URL} PUT`]);
  });

  it('follows a new URL, and is forgotten when the API names none', async () => {
    await beats(1);
    atDoor = answered(503);
    named = 'https://other.example';
    await beats(1);
    atDoor = answered(200);
    expect(await beats(1)).toEqual(['https://other.example PUT']);
    atDoor = answered(503);
    named = undefined;
    await beats(1);
    nowMs += 120_000;
    expect(await beats(1)).toEqual(['api PUT']);
  });

  it.each(['http://beats.example', 'https://user@beats.example', 'https://beats.example/path', 'javascript:1', ''])(
    'does not send a token to %j',
    async (url) => {
      named = url;
      expect(await beats(2)).toEqual(['api PUT', 'api PUT']);
    },
  );

  it('waits three seconds at most: a lost heartbeat costs no interval', async () => {
    const limits: (number | undefined)[] = [];
    const limited = withHeartbeatDoor({
      api: client('api', () => answered(200, URL)),
      open: () =>
        client('door', ({ timeoutMs }) => {
          limits.push(timeoutMs);
          return answered(200);
        }),
      monotonicMs: () => 0,
    });
    await limited.send(BEAT);
    await limited.send({ ...BEAT, timeoutMs: 10_000 });
    await limited.send({ ...BEAT, timeoutMs: 500 });
    expect(limits).toEqual([3_000, 500]);
  });

  it('sends nothing after a stop', async () => {
    await beats(1);
    atDoor = { kind: 'failed', cause: new Error('stopped') };
    await api.send({ ...BEAT, signal: AbortSignal.abort() });
    expect(sent).toEqual([`${URL} PUT`]);
  });
});

it('connects again on both ways, and closes the one that it leaves', async () => {
  const reconnected: string[] = [];
  const noted = (name: string, base: KubeApi): KubeApi => ({ ...base, reconnect: () => void reconnected.push(name) });
  const both = withHeartbeatDoor({
    api: noted(
      'api',
      client('api', () => atApi ?? answered(200, named)),
    ),
    open: (url) =>
      noted(
        url,
        client(url, () => atDoor),
      ),
    monotonicMs: () => nowMs,
  });
  both.reconnect();
  expect(reconnected.splice(0)).toEqual(['api']);
  await both.send(BEAT);
  both.reconnect();
  expect(reconnected.splice(0)).toEqual([URL, 'api']);
  // It does not answer: the next heartbeats go the other way. Its answer names another URL.
  atDoor = answered(503);
  named = 'https://other.example';
  await both.send(BEAT);
  expect(reconnected).toEqual([URL, URL]);
});
