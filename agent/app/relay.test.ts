import { beforeEach, describe, expect, it } from 'vitest';
import {
  LEASE_BATCH_BYTES_MAX,
  LEASE_BATCHES_PATH,
  type LeaseBatch,
  type LeaseBatchAnswerItem,
  type LeaseBatchItem,
} from '../../shared/domain/nodes/lease-batch.ts';
import { answered, refused, silentLog, timedOut } from '../../test/support/agent-api.ts';
import type { KubeAnswer, KubeRequest } from '../ports/kube-api.ts';
import { HeartbeatRelay } from './relay.ts';

/** Time that passes only when the test says so. */
class Clock {
  #nowMs = 0;
  readonly #sleepers = new Set<{ readonly atMs: number; readonly wake: () => void }>();

  readonly time = {
    nowMs: () => this.#nowMs,
    monotonicMs: () => this.#nowMs,
    sleep: (milliseconds: number, signal?: AbortSignal) =>
      new Promise<void>((resolve) => {
        const sleeper = { atMs: this.#nowMs + milliseconds, wake: resolve };
        this.#sleepers.add(sleeper);
        signal?.addEventListener('abort', () => {
          this.#sleepers.delete(sleeper);
          resolve();
        });
      }),
  };

  async pass(milliseconds: number): Promise<void> {
    this.#nowMs += milliseconds;
    for (const sleeper of this.#sleepers) {
      if (sleeper.atMs > this.#nowMs) continue;
      this.#sleepers.delete(sleeper);
      sleeper.wake();
    }
    await settled();
  }
}
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

const itemOf = (name: string, body = '{}'): LeaseBatchItem => ({
  method: 'PUT',
  path: `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${name}`,
  token: `token-of-${name}`,
  body,
});
const namesIn = ({ body }: KubeRequest) =>
  (body as LeaseBatch).items.map(({ token }) => token.replace('token-of-', ''));
/** The cluster answers each item with its name. */
const accepts = (request: KubeRequest): KubeAnswer =>
  answered(200, { kind: 'LeaseBatch', items: namesIn(request).map((name) => ({ status: 200, body: { name } })) });

let clock: Clock;
let requests: KubeRequest[];
let answer: (request: KubeRequest) => KubeAnswer | Promise<KubeAnswer>;
let counts: Record<string, number>;
let relay: HeartbeatRelay;

beforeEach(() => {
  clock = new Clock();
  requests = [];
  answer = accepts;
  counts = {};
  relay = new HeartbeatRelay({
    api: {
      send: async (request) => {
        requests.push(request);
        return answer(request);
      },
      reconnect: () => {},
    },
    time: clock.time,
    log: silentLog,
    meter: {
      count: (name, labels) => {
        const key = `${name} ${Object.values(labels ?? {}).join()}`;
        counts[key] = (counts[key] ?? 0) + 1;
      },
    },
  });
});

/** The relay then expects these machines: one alone does not complete a batch. */
async function known(...names: readonly string[]): Promise<void> {
  const all = names.map((name) => relay.relay(itemOf(name)));
  await clock.pass(2_000);
  await Promise.all(all);
  requests = [];
}

describe('a relay', () => {
  it('sends heartbeats of two seconds in one request, and returns to each machine its own answer', async () => {
    await known('n1', 'n2', 'n3', 'n4');
    const first = relay.relay(itemOf('n1'));
    await clock.pass(1_000);
    const second = relay.relay(itemOf('n2'));
    await clock.pass(999);
    expect(requests).toEqual([]);
    await clock.pass(1);
    expect(requests.map(({ method, path }) => [method, path])).toEqual([['POST', LEASE_BATCHES_PATH]]);
    expect(requests.map(namesIn)).toEqual([['n1', 'n2']]);
    expect([await first, await second]).toEqual([
      { status: 200, body: { name: 'n1' } },
      { status: 200, body: { name: 'n2' } },
    ]);
  });

  it('sends at once when each machine of the last half minute has sent its heartbeat', async () => {
    await known('n1', 'n2', 'n3');
    await clock.pass(10_000);
    const beats = ['n3', 'n1', 'n2'].map((name) => relay.relay(itemOf(name)));
    await settled();
    expect(requests.map(namesIn)).toEqual([['n3', 'n1', 'n2']]);
    await Promise.all(beats);
    // n3 is not expected any more.
    await clock.pass(30_000);
    void known('n1', 'n2');
    await clock.pass(2_000);
    void relay.relay(itemOf('n1'));
    void relay.relay(itemOf('n2'));
    await settled();
    expect(requests.map(namesIn)).toEqual([['n1', 'n2']]);
  });

  it('sends at once with 100 heartbeats, and before a batch is too large', async () => {
    await known('n0', 'n-other');
    const beats = Array.from({ length: 150 }, (_, index) => relay.relay(itemOf(`n${index}`, ' '.repeat(100))));
    await settled();
    expect(requests.map((request) => namesIn(request).length)).toEqual([100]);
    await clock.pass(2_000);
    expect(requests.map((request) => namesIn(request).length)).toEqual([100, 50]);
    await Promise.all(beats);
    requests = [];
    const large = Array.from({ length: 60 }, (_, index) => relay.relay(itemOf(`n${index}`, '"'.repeat(4_000))));
    await clock.pass(2_000);
    await Promise.all(large);
    for (const { body } of requests) {
      expect(Buffer.byteLength(JSON.stringify(body))).toBeLessThanOrEqual(LEASE_BATCH_BYTES_MAX);
    }
    expect(requests.flatMap(namesIn)).toHaveLength(60);
  });

  it.each<[string, (request: KubeRequest) => KubeAnswer]>([
    ['does not answer', () => timedOut],
    ['answers 503', () => refused(503, 'ServiceUnavailable')],
    ['does not know batches', () => refused(404, 'NotFound')],
    ['answers 200 with a login page', () => answered(200, '<html>')],
    ['answers for fewer machines', () => answered(200, { kind: 'LeaseBatch', items: [{ status: 200, body: {} }] })],
    ['answers without a status', () => answered(200, { kind: 'LeaseBatch', items: [{}, null] })],
  ])('acknowledges nothing if the cluster %s', async (_, given) => {
    await known('n1', 'n2');
    answer = given;
    const beats = [relay.relay(itemOf('n1')), relay.relay(itemOf('n2'))];
    await clock.pass(2_000);
    const answers = await Promise.all(beats);
    expect(answers.map(({ status }) => status)).toEqual([503, 503]);
    expect(answers[0]?.body).toMatchObject({ kind: 'Status', reason: 'ServiceUnavailable' });
    answer = accepts;
    expect((await relayed('n1', 'n2')).map(({ status }) => status)).toEqual([200, 200]);
    expect(counts['nodekeeper_agent_relay_batches_total failed']).toBe(1);
  });

  async function relayed(...names: readonly string[]): Promise<readonly LeaseBatchAnswerItem[]> {
    const beats = names.map((name) => relay.relay(itemOf(name)));
    await clock.pass(2_000);
    return Promise.all(beats);
  }

  it('passes on what the cluster answers to each', async () => {
    await known('n1', 'n2', 'n3');
    const items = [
      { status: 200, body: {} },
      { status: 429, retryAfterSeconds: 7, body: {} },
      { status: 401, body: {} },
    ];
    answer = () => answered(200, { kind: 'LeaseBatch', items });
    expect(await relayed('n1', 'n2', 'n3')).toEqual(items);
    expect(counts['nodekeeper_agent_relayed_heartbeats_total 429']).toBe(1);
  });

  it('has four batches under way at most, and refuses others at once', async () => {
    await known('n1', 'n2');
    const release: (() => void)[] = [];
    answer = (request) => new Promise((resolve) => release.push(() => resolve(accepts(request))));
    const pending = Array.from({ length: 4 }, () => [relay.relay(itemOf('n1')), relay.relay(itemOf('n2'))]).flat();
    await settled();
    expect((await relayed('n1', 'n2')).map(({ status }) => status)).toEqual([503, 503]);
    for (const each of release) each();
    expect((await Promise.all(pending)).every(({ status }) => status === 200)).toBe(true);
    answer = accepts;
    expect((await relayed('n1', 'n2')).map(({ status }) => status)).toEqual([200, 200]);
  });
});
