import { beforeEach, describe, expect, it } from 'vitest';
import { steadySeconds } from '../../shared/fleet/policy.ts';
import { answered, refused, silentLog, timedOut } from '../../test/support/agent-api.ts';
import { randomFrom } from '../../test/support/seeded.ts';
import type { KubeAnswer, KubeApi, KubeRequest } from '../ports/kube-api.ts';
import { leasePath } from '../rules/lease.ts';
import { RELAY_WAIT_MS } from '../rules/relay-use.ts';
import { withRelay } from './relay-route.ts';

const lease = (name = 'n1', metadata: object = {}) => ({
  kind: 'Lease',
  metadata: { name, resourceVersion: '1', ...metadata },
});
const body = { ...lease(), spec: { holderIdentity: 'n1' } };
const beat: KubeRequest = {
  method: 'PUT',
  path: leasePath('n1'),
  body,
  heartbeat: { intervalMs: 10_000 },
  timeoutMs: 10_000,
};
const accepted = answered(200, lease());
const conflict = refused(409, 'Conflict');

let nowMs: number;
let sent: [way: string, timeoutMs: number][];
/** For how long the relay may collect the last heartbeat. Milliseconds. */
let collecting: number | undefined;
let answers: { relay: KubeAnswer; direct: KubeAnswer };
let reconnects: string[];
let lines: string[];
let warnings: string[];
/** How long each way needs for an answer. Milliseconds. */
let needs: { relay: number | 'as long as it may'; direct: number };
/** Happens while the relay has a heartbeat. */
let duringRelay: () => void;
let api: KubeApi;

beforeEach(() => {
  nowMs = 0;
  sent = [];
  reconnects = [];
  lines = [];
  warnings = [];
  duringRelay = () => undefined;
  needs = { relay: 0, direct: 0 };
  answers = { relay: accepted, direct: accepted };
  const client = (way: 'relay' | 'direct'): KubeApi => ({
    send: async ({ timeoutMs = Number.NaN, collectMs, signal }) => {
      sent.push([way, timeoutMs]);
      if (way === 'relay') collecting = collectMs;
      if (way === 'relay') duringRelay();
      if (signal?.aborted === true) return timedOut;
      const needsMs = needs[way];
      const isLate = typeof needsMs === 'number' && needsMs > timeoutMs;
      nowMs += typeof needsMs === 'number' && !isLate ? needsMs : timeoutMs;
      return isLate ? timedOut : answers[way];
    },
    reconnect: () => void reconnects.push(way),
  });
  api = withRelay({
    relay: client('relay'),
    direct: client('direct'),
    nodeName: 'n1',
    monotonicMs: () => nowMs,
    log: {
      ...silentLog,
      info: (message, fields) => void lines.push(`${message} ${JSON.stringify(fields)}`),
      warn: (message, fields) => {
        warnings.push(message);
        lines.push(`${message} ${JSON.stringify(fields)}`);
      },
    },
  });
});

/** The ways of one heartbeat. */
async function ways(request = beat): Promise<string> {
  sent = [];
  await api.send(request);
  return sent.map(([way]) => way).join(', ');
}
const pass = (milliseconds: number): void => {
  nowMs += milliseconds;
};

describe('heartbeats of a machine with a relay', () => {
  it('sends what is new about the site directly first, and through the relay where that fails', async () => {
    const urgent: KubeRequest = { ...beat, heartbeat: { intervalMs: 10_000, isUrgent: true } };
    expect([await ways(), await ways(), await ways(urgent), await ways()]).toEqual([
      'direct',
      'relay',
      'direct',
      'relay',
    ]);
    answers.direct = timedOut;
    expect(await ways(urgent)).toBe('direct, relay');
  });

  it('sends one that waits for the relay directly when it becomes urgent, and uses the relay again', async () => {
    await ways();
    const change = new AbortController();
    const heartbeat = { intervalMs: 10_000, becomesUrgent: change.signal };
    duringRelay = () => change.abort();
    expect(await ways({ ...beat, heartbeat })).toBe('relay, direct');
    expect(warnings).toEqual([]);
    duringRelay = () => undefined;
    expect(await ways()).toBe('relay');
  });

  it('are sent through it, the first one and one every five minutes directly', async () => {
    expect(await ways()).toBe('direct');
    const used: string[] = [];
    for (let beats = 0; beats < 31; beats += 1) {
      pass(10_000);
      used.push(await ways());
    }
    expect(used.filter((way) => way === 'direct')).toHaveLength(1);
    expect(used[29]).toBe('direct');
  });

  it('reach the cluster through the relay while the direct way fails', async () => {
    await ways();
    answers.direct = timedOut;
    const used: string[] = [];
    for (let beats = 0; beats < 42; beats += 1) {
      pass(10_000);
      expect(await api.send(beat)).toMatchObject({ kind: 'answered', status: 200 });
      used.push(await ways());
    }
    // The check is due after five minutes, and then once a minute.
    expect(used.filter((way) => way.startsWith('direct')).length).toBeLessThanOrEqual(3);
    answers.direct = accepted;
    pass(60_000);
    expect(await ways()).toBe('direct');
    expect(await ways()).toBe('relay');
    expect(warnings).toEqual([]);
  });

  it('wait five seconds at most for the relay, and less if the next one would be too late otherwise', async () => {
    await ways();
    await ways();
    expect(sent).toEqual([['relay', 2_600]]);
    expect(collecting).toBe(1_000);
    await ways({ ...beat, heartbeat: { intervalMs: 60_000 } });
    expect(sent).toEqual([['relay', RELAY_WAIT_MS]]);
    expect(collecting).toBe(2_000);
  });

  it('are marked, because the relay may have made up the answer', async () => {
    expect(await api.send(beat)).not.toHaveProperty('isRelayed');
    expect(await api.send(beat)).toEqual({ ...answered(200, body), isRelayed: true });
  });

  it.each<[string, KubeAnswer]>([
    ['does not answer', timedOut],
    ['answers 503', refused(503, 'ServiceUnavailable')],
    ['answers 401', refused(401, 'Unauthorized')],
    ['answers 403', refused(403, 'Forbidden')],
    ['answers 429', refused(429, 'TooManyRequests')],
    ['answers with the Lease of another node', answered(200, lease('n2'))],
    ['answers without a version', answered(200, lease('n1', { resourceVersion: undefined }))],
    ['answers with a login page', answered(200, '<html>')],
  ])('are sent directly at once if it %s, and through it again after a minute', async (_, answer) => {
    await ways();
    answers.relay = answer;
    expect(await ways()).toBe('relay, direct');
    pass(59_999);
    expect(await ways()).toBe('direct');
    answers.relay = accepted;
    pass(1);
    expect(await ways()).toBe('relay');
    expect(warnings).toHaveLength(1);
  });

  it.each([404, 409])('are sent directly after %i, which may be a lie, and the relay stays in use', async (code) => {
    await ways();
    answers = { relay: refused(code, ''), direct: refused(code, '') };
    expect(await ways()).toBe('relay, direct');
    answers = { relay: accepted, direct: accepted };
    expect(await ways()).toBe('relay');
    expect(warnings).toEqual([]);
  });

  it('avoid for an hour a relay that acknowledged what the cluster does not know', async () => {
    await ways();
    expect(await ways()).toBe('relay');
    pass(300_000);
    answers.direct = conflict;
    expect(await ways()).toBe('direct');
    answers.direct = accepted;
    pass(3_599_999);
    expect(await ways()).toBe('direct');
    pass(1);
    expect(await ways()).toBe('relay');
    expect(warnings).toEqual(['the relay acknowledged a heartbeat that the cluster does not know']);
  });

  it('do not blame the relay for a conflict after a heartbeat that it did not acknowledge', async () => {
    await ways();
    await ways();
    answers = { relay: timedOut, direct: conflict };
    expect(await ways()).toBe('relay, direct');
    answers = { relay: accepted, direct: accepted };
    expect(await ways()).toBe('direct');
    pass(50_000);
    expect(await ways()).toBe('direct');
    pass(10_000);
    expect(await ways()).toBe('relay');
  });

  it.each<[string, KubeAnswer]>([
    ['was not answered', timedOut],
    ['was answered 503', refused(503, 'ServiceUnavailable')],
  ])('do not blame the relay for a conflict after a direct one that %s: it may be stored', async (_, answer) => {
    await ways();
    await ways();
    pass(300_000);
    // It is stored: the cluster refuses the same version from the relay, and from the machine.
    answers = { relay: conflict, direct: answer };
    expect(await ways()).toBe('direct, relay');
    answers.direct = conflict;
    expect(await ways()).toBe('relay, direct');
    answers = { relay: accepted, direct: accepted };
    pass(60_000);
    expect(await ways()).toBe('direct');
    expect(await ways()).toBe('relay');
    expect(warnings).toEqual([]);
  });

  it('do not blame the relay for a conflict with the same request, sent before without an answer', async () => {
    await ways();
    await ways();
    pass(300_000);
    answers.direct = { kind: 'answered', status: 409, body: {}, isRepeated: true };
    await ways();
    answers.direct = accepted;
    await ways();
    expect(await ways()).toBe('relay');
    expect(warnings).toEqual([]);
  });

  it('accept from a relay the version and the news of the server, and nothing that they send later', async () => {
    await ways();
    const news = { 'nodekeeper.dev/pods-version': '7', 'nodekeeper.dev/beat-interval-seconds': '20' };
    const forged = {
      ...lease('n1', {
        resourceVersion: '2',
        uid: 'forged',
        labels: { forged: '' },
        finalizers: ['forged/finalizer'],
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n2', uid: 'forged' }],
        annotations: { ...news, forged: '', 'nodekeeper.dev/heartbeat-url': 'https://forged.example' },
      }),
      spec: { holderIdentity: 'forged' },
    };
    answers.relay = answered(200, forged);
    const sentBody = { ...body, metadata: { ...body.metadata, annotations: { kept: 'yes' } } };
    const answer = await api.send({ ...beat, body: sentBody });
    expect(answer).toEqual({
      ...answered(200, {
        ...lease('n1', { resourceVersion: '2', annotations: { kept: 'yes', ...news } }),
        spec: body.spec,
      }),
      isRelayed: true,
    });
  });

  it('without a bound of their own have that of the relay', async () => {
    await ways();
    const { timeoutMs: _, ...unbound } = beat;
    await ways(unbound);
    expect(sent).toEqual([['relay', 2_600]]);
  });

  it('that were sent directly and end with the agent are not sent through the relay', async () => {
    answers.direct = timedOut;
    expect(await ways({ ...beat, signal: AbortSignal.abort() })).toBe('direct');
  });

  it('end with the relay when the agent stops', async () => {
    await ways();
    answers.relay = timedOut;
    expect(await ways({ ...beat, signal: AbortSignal.abort() })).toBe('relay');
  });
});

describe('a relay that hangs', () => {
  /** With this interval. */
  const beatEvery = (intervalMs: number): KubeRequest => ({ ...beat, heartbeat: { intervalMs } });

  it('delays no heartbeat while the interval is too short for it, which is logged once per change', async () => {
    await ways();
    expect(await ways()).toBe('relay');
    pass(10_000);
    answers.relay = timedOut;
    for (let beats = 0; beats < 20; beats += 1) {
      expect(await ways(beatEvery(5_000))).toBe('direct');
      pass(5_000);
    }
    // The idle connection to the relay was closed, once.
    expect(reconnects).toEqual(['relay']);
    expect(lines).toEqual([
      'the relay is not used: the heartbeat interval is too short for it {"node":"n1","intervalSeconds":5}',
    ]);
    answers.relay = accepted;
    expect(await ways()).toBe('relay');
    expect(await ways()).toBe('relay');
    expect(lines.slice(1)).toEqual([
      'the relay is used: the heartbeat interval is long enough for it {"node":"n1","intervalSeconds":10}',
    ]);
  });

  it('delays no heartbeat after an acknowledgement that came late', async () => {
    await ways();
    // 14 s from one heartbeat to the next, 1.5 s of waiting and 1 s for the direct one: 11.5 s since the begin of the
    // last one.
    needs.relay = 1_100;
    expect(await ways()).toBe('relay');
    pass(10_400);
    needs.relay = 1_101;
    expect(await ways()).toBe('relay');
    pass(10_400);
    expect(await ways()).toBe('direct');
    pass(10_400);
    expect(await ways()).toBe('relay');
    expect(lines).toEqual([]);
  });

  it('delays no further attempt of a heartbeat that was delayed before', async () => {
    await ways();
    pass(11_500);
    needs.relay = 4_900;

    answers = { relay: conflict, direct: conflict };
    expect(await ways()).toBe('relay, direct');
    answers = { relay: timedOut, direct: accepted };
    expect(await ways()).toBe('direct');
  });

  it('is still used for a late heartbeat while the direct way fails', async () => {
    await ways();
    pass(300_000);
    answers.direct = timedOut;
    expect(await ways()).toBe('direct, relay');
    pass(20_000);
    expect(await ways()).toBe('relay');
  });

  it('never delays a heartbeat beyond the time that no report of witnesses shortens', async () => {
    const random = randomFrom(5);
    let delayed = 0;
    for (const intervalMs of [1_000, 5_000, 8_000, 9_000, 9_900, 10_000, 12_000, 30_000]) {
      answers.relay = accepted;
      await ways(beatEvery(intervalMs));
      let storedAtMs = nowMs;
      for (let beats = 0; beats < 500; beats += 1) {
        // The first heartbeat follows sooner.
        pass(random() < 0.1 ? 1_000 * random() : intervalMs * (1 + 0.04 * random()));
        const fromMs = nowMs;
        const hangs = random() < 0.3;
        needs.relay = hangs ? 'as long as it may' : 3_000 * random();
        answers.relay = hangs ? timedOut : accepted;
        const used = await ways(beatEvery(intervalMs));
        if (used === 'relay, direct') delayed += 1;
        if (used.endsWith('direct')) {
          expect(nowMs - storedAtMs, `${intervalMs}`).toBeLessThanOrEqual(
            1_000 * steadySeconds(intervalMs / 1_000) - 1_000,
          );
        }
        // The relay has a heartbeat stored at once, and holds back the answer.
        storedAtMs = used === 'relay' ? fromMs : nowMs;
      }
    }
    expect(delayed).toBeGreaterThan(100);
  });
});

describe('other requests', () => {
  it('are never sent through the relay', async () => {
    await ways();
    expect(await ways({ method: 'GET', path: leasePath('n1') })).toBe('direct');
    expect(await ways({ method: 'POST', path: '/api/v1/nodes', body: {} })).toBe('direct');
  });

  it('to reconnect concern both ways', () => {
    api.reconnect();
    expect(reconnects).toEqual(['relay', 'direct']);
  });
});
