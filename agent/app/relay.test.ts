import { beforeEach, describe, expect, it } from 'vitest';
import {
  LEASE_BATCH_BYTES_MAX,
  LEASE_BATCHES_PATH,
  type LeaseBatch,
  type LeaseBatchAnswerItem,
  type LeaseBatchItem,
} from '../../shared/fleet/nodes/lease-batch.ts';
import { answered, refused, silentLog, timedOut } from '../../test/support/agent-api.ts';
import { randomFrom } from '../../test/support/seeded.ts';
import { SteppedTime, settle } from '../../test/support/stepped-time.ts';
import type { KubeAnswer, KubeRequest } from '../ports/kube-api.ts';
import { jitteredMs } from '../rules/lease.ts';
import { HeartbeatRelay } from './relay.ts';

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

let clock: SteppedTime;
let requests: KubeRequest[];
let answer: (request: KubeRequest) => KubeAnswer | Promise<KubeAnswer>;
let counts: Record<string, number>;
let relay: HeartbeatRelay;

beforeEach(() => {
  clock = new SteppedTime(0);
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
    time: clock,
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
    await known('leader', 'n1', 'n2', 'n3');
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

  it('returns what waits of a machine that is silent in the site, and says whether more is on its way', async () => {
    await known('n1', 'n2', 'n3');
    const [held, sent] = [relay.relay(itemOf('n1')), relay.relay(itemOf('n2'))];
    expect(relay.withhold('n1')).toBe(false);
    expect((await held).status).toBe(503);
    let release = (): void => {};
    answer = (request) => new Promise((resolve) => (release = () => resolve(accepts(request))));
    await clock.pass(2_000);
    expect(requests.map(namesIn)).toEqual([['n2']]);
    expect([relay.withhold('n2'), relay.withhold('n1')]).toEqual([true, false]);
    release();
    expect(await sent).toMatchObject({ status: 200 });
    expect(relay.withhold('n2')).toBe(false);
  });

  it('sends no empty batch', async () => {
    await known('n1', 'n2');
    const held = relay.relay(itemOf('n1'));
    relay.withhold('n1');
    await clock.pass(2_000);
    expect([(await held).status, requests]).toEqual([503, []]);
  });

  it('adds to a Lease what the cluster left out of it', async () => {
    await known('n1', 'n2');
    const metadata = { resourceVersion: '7', annotations: { 'nodekeeper.dev/pods-version': '3' } };
    const stored = { status: 200, body: { metadata } };
    const gone = { status: 404, body: { kind: 'Status', metadata: {} } };
    answer = () => answered(200, { kind: 'LeaseBatch', items: [stored, gone] });
    expect(await relayed('n1', 'n2')).toEqual([
      {
        status: 200,
        body: {
          apiVersion: 'coordination.k8s.io/v1',
          kind: 'Lease',
          metadata: { name: 'n1', namespace: 'kube-node-lease', ...metadata },
        },
      },
      gone,
    ]);
  });

  it('sends at once when each machine of the last half minute has sent its heartbeat', async () => {
    await known('n1', 'n2', 'n3');
    await clock.pass(10_000);
    const beats = ['n3', 'n1', 'n2'].map((name) => relay.relay(itemOf(name)));
    await settle();
    expect(requests.map(namesIn)).toEqual([['n3', 'n1', 'n2']]);
    await Promise.all(beats);
    // Then n3 is not expected any more.
    await clock.pass(30_000);
    await known('n1', 'n2');
    void relay.relay(itemOf('n1'));
    void relay.relay(itemOf('n2'));
    await settle();
    expect(requests.map(namesIn)).toEqual([['n1', 'n2']]);
  });

  it('sends half a second after the leader’s heartbeat', async () => {
    await known('leader', 'n1', 'n2', 'n3');
    void relay.relay(itemOf('leader'));
    await clock.pass(499);
    void relay.relay(itemOf('n1'));
    expect(requests).toEqual([]);
    await clock.pass(1);
    expect(requests.map(namesIn)).toEqual([['leader', 'n1']]);
    await clock.pass(5_000);
    // The leader joins a batch that another machine began.
    void relay.relay(itemOf('n2'));
    await clock.pass(1_000);
    void relay.relay(itemOf('leader'));
    await clock.pass(500);
    expect(requests.map(namesIn).slice(1)).toEqual([['n2', 'leader']]);
  });

  it('sends when the first of its machines may wait no longer', async () => {
    await known('leader', 'n1', 'n2', 'n3');
    void relay.relay(itemOf('n1'), 1_500);
    await clock.pass(200);
    void relay.relay(itemOf('n2'), 1_000);
    await clock.pass(999);
    void relay.relay(itemOf('n3'), 700);
    expect(requests).toEqual([]);
    await clock.pass(1);
    expect(requests.map(namesIn)).toEqual([['n1', 'n2', 'n3']]);
    // The next batch has its own time.
    void relay.relay(itemOf('n1'));
    await clock.pass(1_999);
    expect(requests).toHaveLength(1);
    await clock.pass(1);
    expect(requests.map(namesIn).slice(1)).toEqual([['n1']]);
  });

  it('has another leader half a minute after the last heartbeat of the first', async () => {
    await known('leader', 'n1', 'n2');
    await clock.pass(30_000);
    await known('n2', 'n1', 'leader');
    void relay.relay(itemOf('leader'));
    await clock.pass(1_999);
    expect(requests).toEqual([]);
    await clock.pass(1);
    void relay.relay(itemOf('n2'));
    await clock.pass(500);
    expect(requests.map(namesIn)).toEqual([['leader'], ['n2']]);
  });

  it('makes one batch of a site of 25 machines within five minutes', async () => {
    const random = randomFrom(7);
    const intervals: number[] = [];
    const machine = async (name: string): Promise<void> => {
      await clock.sleep(10_000 * random());
      for (;;) {
        const sentAtMs = clock.monotonicMs();
        await relay.relay(itemOf(name));
        await clock.sleep(jitteredMs(10_000, random()));
        intervals.push(clock.monotonicMs() - sentAtMs);
      }
    };
    for (let index = 0; index < 25; index += 1) void machine(`n${index}`);
    await clock.pass(60_000);
    expect(namesIn(requests.at(-1)!).length).toBeLessThan(25);
    await clock.pass(240_000);
    requests = [];
    intervals.length = 0;
    await clock.pass(300_000);
    expect(new Set(requests.map((request) => namesIn(request).length))).toEqual(new Set([25]));
    expect(Math.max(...intervals)).toBeLessThan(10_900);
  });

  it('sends at once with 100 heartbeats, and before a batch is too large', async () => {
    await known('n0', 'n-other');
    const beats = Array.from({ length: 150 }, (_, index) => relay.relay(itemOf(`n${index}`, ' '.repeat(100))));
    await settle();
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
    [
      'answers with a status alone',
      () => answered(200, { kind: 'LeaseBatch', items: [{ status: 200 }, { status: 1 }] }),
    ],
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
  });

  it('counts a batch without a usable answer as failed', async () => {
    await known('n1', 'n2');
    answer = () => timedOut;
    await relayed('n1', 'n2');
    expect(counts['nodekeeper_agent_relay_batches_total failed']).toBe(1);
  });

  it.each([
    [{ status: 200 }],
    [{ status: 200, body: '<html>' }],
    [{ status: 429, retryAfterSeconds: '\r\n', body: {} }],
    [{ status: 1_000, body: {} }],
  ])('answers 503 to the machine alone that the cluster answers %j', async (malformed) => {
    await known('n1', 'n2', 'n3');
    const good = { status: 200, body: {} };
    answer = () => answered(200, { kind: 'LeaseBatch', items: [good, malformed, good] });
    expect((await relayed('n1', 'n2', 'n3')).map(({ status }) => status)).toEqual([200, 503, 200]);
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

  it('sends one batch per second on average, however fast it is filled', async () => {
    const names = Array.from({ length: 100 }, (_, index) => `n${index}`);
    const fill = () => Promise.all(names.map((name) => relay.relay(itemOf(name))));
    await known(...names);
    await clock.pass(10_000);
    const statuses: number[] = [];
    for (let batch = 0; batch < 22; batch += 1) statuses.push((await fill())[0]!.status);
    expect(statuses).toEqual([...Array.from({ length: 20 }, () => 200), 503, 503]);
    expect(requests).toHaveLength(20);
    await clock.pass(1_000);
    expect([(await fill())[0]!.status, (await fill())[0]!.status]).toEqual([200, 503]);
  });

  it('has four batches under way at most, and refuses others at once', async () => {
    await known('n1', 'n2');
    const release: (() => void)[] = [];
    answer = (request) => new Promise((resolve) => release.push(() => resolve(accepts(request))));
    const pending = Array.from({ length: 4 }, () => [relay.relay(itemOf('n1')), relay.relay(itemOf('n2'))]).flat();
    await settle();
    expect((await relayed('n1', 'n2')).map(({ status }) => status)).toEqual([503, 503]);
    for (const each of release) each();
    expect((await Promise.all(pending)).every(({ status }) => status === 200)).toBe(true);
    answer = accepts;
    expect((await relayed('n1', 'n2')).map(({ status }) => status)).toEqual([200, 200]);
  });
});
