import { beforeEach, describe, expect, it } from 'vitest';
import { answered, refused, silentLog, timedOut } from '../../test/support/agent-api.ts';
import type { KubeAnswer, KubeApi, KubeRequest } from '../ports/kube-api.ts';
import { leasePath } from '../rules/lease.ts';
import { withRelay } from './relay-route.ts';

const lease = (name = 'n1', metadata: object = {}) => ({
  kind: 'Lease',
  metadata: { name, resourceVersion: '1', ...metadata },
});
const body = { ...lease(), spec: { holderIdentity: 'n1' } };
const beat: KubeRequest = { method: 'PUT', path: leasePath('n1'), body, isHeartbeat: true, timeoutMs: 10_000 };
const accepted = answered(200, lease());
const conflict = refused(409, 'Conflict');

let nowMs: number;
let sent: [way: string, timeoutMs: number | undefined][];
let answers: { relay: KubeAnswer; direct: KubeAnswer };
let reconnects: string[];
let warnings: string[];
let api: KubeApi;

beforeEach(() => {
  nowMs = 0;
  sent = [];
  reconnects = [];
  warnings = [];
  answers = { relay: accepted, direct: accepted };
  const client = (way: 'relay' | 'direct'): KubeApi => ({
    send: async ({ timeoutMs }) => {
      sent.push([way, timeoutMs]);
      return answers[way];
    },
    reconnect: () => void reconnects.push(way),
  });
  api = withRelay({
    relay: client('relay'),
    direct: client('direct'),
    nodeName: 'n1',
    monotonicMs: () => nowMs,
    log: { ...silentLog, warn: (message) => void warnings.push(message) },
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

  it('wait five seconds at most for the relay', async () => {
    await ways();
    await ways();
    expect(sent).toEqual([['relay', 5_000]]);
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
    pass(60_000);
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

  it('end with the relay when the agent stops', async () => {
    await ways();
    answers.relay = timedOut;
    expect(await ways({ ...beat, signal: AbortSignal.abort() })).toBe('relay');
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
