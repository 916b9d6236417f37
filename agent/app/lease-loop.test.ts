import { describe, expect, it } from 'vitest';
import { defined } from '../../shared/defined.ts';
import type { NodeUsage } from '../../shared/fleet/nodes/node-usage.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import {
  answered,
  inOrder,
  refused,
  scriptedApi,
  silentLog,
  timedOut,
  virtualTime,
} from '../../test/support/agent-api.ts';
import { SteppedTime } from '../../test/support/stepped-time.ts';
import type { KubeAnswer, KubeRequest } from '../ports/kube-api.ts';
import { firstWaitMs } from '../rules/lease.ts';
import { createLeaseLoop, type LeaseLoopDependencies } from './lease-loop.ts';
import { SilenceReport } from './silence-report.ts';

const node = { kind: 'Node', metadata: { name: 'edge-7', uid: 'u1' } };
const lease = (version: string, podsVersion?: string, annotation = 'nodekeeper.dev/pods-version') => ({
  kind: 'Lease',
  metadata: {
    name: 'edge-7',
    resourceVersion: version,
    ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'edge-7', uid: 'u1' }],
    ...(podsVersion === undefined ? {} : { annotations: { [annotation]: podsVersion } }),
  },
  spec: {},
});

interface Given {
  readonly answer: (request: KubeRequest) => KubeAnswer | undefined;
  readonly sleepsMax?: number;
  readonly registerAgain?: () => Promise<boolean>;
  readonly usage?: () => NodeUsage | undefined;
  readonly silence?: LeaseLoopDependencies['silence'];
}

function world({ answer, sleepsMax = 50, registerAgain = async () => false, usage, silence }: Given) {
  const stopper = new AbortController();
  const api = scriptedApi(answer);
  const time = virtualTime(1_700_000_000_000, (waits) => {
    if (waits.length >= sleepsMax) stopper.abort();
  });
  const loop = createLeaseLoop(
    { nodeName: 'edge-7', nodeLeaseDurationSeconds: 40 },
    {
      ...{ api, time, fraction: () => 0.5, log: silentLog, stop: stopper.signal, timeoutMs: 10_000, registerAgain },
      ...defined({ usage, silence }),
    },
  );
  const sent = () => api.requests.map(({ method, path }) => `${method} ${path.includes('/leases') ? 'lease' : 'node'}`);
  return { api, time, loop, sent, stopper };
}

describe('the lease loop', () => {
  it('notifies of each acknowledged beat, a creation included, and of no other', async () => {
    const answers = inOrder([
      refused(404, 'NotFound'),
      answered(200, node),
      answered(201, lease('1')),
      answered(200, lease('2')),
      ...new Array<KubeAnswer>(5).fill(timedOut),
      answered(200, lease('2')),
      ...new Array<KubeAnswer>(5).fill(timedOut),
    ]);
    const { loop, time } = world({ answer: answers });
    const beats: number[] = [];
    loop.onBeat((atMs) => beats.push(atMs));
    for (let round = 0; round < 3; round += 1) await loop.round();
    expect(beats).toEqual([time.nowMs(), time.nowMs()]);
  });

  it('notifies of heartbeats that the cluster itself answered before all else, and of none of a relay', async () => {
    const relayed: KubeAnswer = { kind: 'answered', status: 200, body: lease('2', '2'), isRelayed: true };
    const { loop } = world({ answer: inOrder([answered(200, lease('0')), relayed, answered(200, lease('3', '3'))]) });
    const calls: string[] = [];
    loop.onPodsChange(() => calls.push('pods'));
    loop.onBeat(() => calls.push('beat'));
    loop.onDirectBeat(() => calls.push('direct'));
    for (let round = 0; round < 2; round += 1) await loop.round();
    expect(calls).toEqual(['beat', 'pods', 'direct', 'beat', 'pods']);
  });

  it('notifies once per change of pods, and never sends the annotation back', async () => {
    const versions = [undefined, undefined, '1', '1', '3'];
    const { loop, api } = world({
      answer: inOrder([answered(200, lease('0')), ...versions.map((version) => answered(200, lease('1', version)))]),
    });
    const changes: number[] = [];
    let round = 0;
    loop.onPodsChange(() => changes.push(round));
    for (; round < versions.length; round += 1) await loop.round();
    expect(changes).toEqual([2, 4]);
    expect(JSON.stringify(api.requests)).not.toContain('pods-version');
  });

  it('sends what the machine used, once it is known, and keeps it until it changes', async () => {
    const memory = { memoryBytes: 1_000, windowSeconds: 60, atSeconds: 1 };
    const usages = [undefined, { ...memory, cpuCores: 0.5 }, undefined, { ...memory, cpuCores: 0.25 }];
    // The server answers with the Lease that it was sent.
    const { loop, api } = world({
      answer: ({ method, body }) =>
        answered(200, method === 'PUT' ? { ...lease('1'), metadata: (body as KubeObject).metadata } : lease('1')),
      usage: () => usages.shift(),
    });
    for (let round = 0; round < 4; round += 1) await loop.round();
    const sent = api.requests.flatMap(({ method, body }) =>
      method === 'PUT' ? [(body as KubeObject).metadata.annotations?.['nodekeeper.dev/usage']] : [],
    );
    expect(sent).toEqual([undefined, '0.500 1000 60 1', '0.500 1000 60 1', '0.250 1000 60 1']);
  });

  it('reports silent machines at once, repeats them, and withdraws them once that is accepted', async () => {
    const silence = new SilenceReport({ role: 'machine', time: virtualTime(0) });
    const accepted = () => answered(200, lease('1'));
    const { loop, api } = world({
      answer: inOrder([accepted(), accepted(), timedOut, accepted(), accepted(), timedOut, accepted(), accepted()]),
      silence,
    });
    await loop.round();
    silence.update(['edge-8']);
    for (let round = 0; round < 2; round += 1) await loop.round();
    silence.update([]);
    for (let round = 0; round < 2; round += 1) await loop.round();
    const sent = api.requests.flatMap(({ method, body, heartbeat }) => {
      const text = (body as KubeObject | undefined)?.metadata.annotations?.['nodekeeper.dev/silent-machines'];
      return method === 'PUT' ? [[text, heartbeat?.isUrgent ?? false]] : [];
    });
    expect(sent).toEqual([
      [undefined, false],
      ['machine edge-8', true],
      ['machine edge-8', true],
      ['machine edge-8', false],
      ['machine ', true],
      ['machine ', true],
      [undefined, false],
    ]);
  });

  it('notices while a heartbeat waits that there is news', async () => {
    const silence = new SilenceReport({ role: 'machine', time: virtualTime(0) });
    const urgent: (boolean | undefined)[] = [];
    const { loop } = world({
      answer: ({ heartbeat }) => {
        urgent.push(heartbeat?.becomesUrgent?.aborted);
        if (heartbeat !== undefined) silence.answer();
        urgent.push(heartbeat?.becomesUrgent?.aborted);
        return answered(200, lease('1'));
      },
      silence,
    });
    await loop.round();
    expect(urgent).toEqual([undefined, undefined, false, true]);
  });

  it('notifies once per request for a log, and never sends the annotation back', async () => {
    const versions = [undefined, '1', '1', '2'];
    const annotation = 'nodekeeper.dev/logs-version';
    const { loop, api } = world({
      answer: inOrder([
        answered(200, lease('0')),
        ...versions.map((version) => answered(200, lease('1', version, annotation))),
      ]),
    });
    const requests: number[] = [];
    const changes: number[] = [];
    let round = 0;
    loop.onLogRequest(() => requests.push(round));
    loop.onPodsChange(() => changes.push(round));
    for (; round < versions.length; round += 1) await loop.round();
    expect([requests, changes]).toEqual([[1, 3], []]);
    expect(JSON.stringify(api.requests)).not.toContain('logs-version');
  });

  it('registers a deleted Node again, then creates its Lease, in the same round', async () => {
    let present = true;
    const { loop, sent } = world({
      answer: ({ method, path }) => {
        if (!path.includes('/leases')) return present ? answered(200, node) : refused(404, 'NotFound');
        if (method === 'POST') return answered(201, lease('9'));
        return present && method === 'GET' ? answered(200, lease('1')) : refused(404, 'NotFound');
      },
      registerAgain: async () => {
        present = true;
        return true;
      },
    });
    await loop.round();
    present = false;
    const before = sent().length;
    await loop.round();
    expect(sent().slice(before)).toEqual([
      ...new Array<string>(5).fill('PUT lease'),
      'GET lease',
      'GET node',
      'GET node',
      'POST lease',
    ]);
    expect(loop.cached()?.metadata.resourceVersion).toBe('9');
  });

  it('has no Lease when the Node does not exist and may not be registered', async () => {
    const { loop, sent, time } = world({ answer: () => refused(404, 'NotFound') });
    await loop.round();
    expect(sent()).toEqual(['GET lease', 'GET node']);
    expect(loop.cached()).toBeUndefined();
    expect(time.waits).toEqual([]);
  });

  it('waits as long as a Retry-After of 429 and 503 asks, bounded and spread, and for no other status', async () => {
    const busy = (status: number, retryAfterMs: number): KubeAnswer => ({
      kind: 'answered',
      status,
      body: {},
      retryAfterMs,
    });
    const { loop, time } = world({
      answer: inOrder([
        answered(200, lease('1')),
        busy(429, 2_000),
        busy(503, 3_600_000),
        busy(500, 5_000),
        answered(200, lease('2')),
      ]),
    });
    await loop.round();
    expect(time.waits).toEqual([2_500, 12_500]);
  });

  it('retries through an outage and renews the same Lease when it ends', async () => {
    let down = false;
    const { loop, time, sent } = world({
      answer: ({ method }) => {
        if (!down) return answered(200, lease(method === 'GET' ? '1' : '2'));
        if (time.nowMs() > 1_700_000_000_000 + 3_600_000) down = false;
        return timedOut;
      },
      sleepsMax: 10_000,
    });
    let silentMs = 0;
    loop.onBeat((_, silence) => {
      silentMs = silence;
    });
    await loop.round();
    expect(silentMs).toBe(0);
    down = true;
    await loop.round();
    expect(silentMs).toBeGreaterThan(3_600_000);
    expect(sent().slice(-2)).toEqual(['GET lease', 'PUT lease']);
    expect(time.waits.at(-1)).toBe(7_000);
    expect(loop.cached()?.metadata.resourceVersion).toBe('2');
  });

  it('says after a suspend, or a pause of the virtual machine, for how long there was no heartbeat', async () => {
    const time = new SteppedTime(1_700_000_000_000);
    const api = scriptedApi(() => answered(200, lease('1')));
    const loop = createLeaseLoop(
      { nodeName: 'edge-7', nodeLeaseDurationSeconds: 40 },
      {
        ...{ api, time, fraction: () => 0, log: silentLog, timeoutMs: 10_000 },
        ...{ stop: new AbortController().signal, registerAgain: async () => false },
      },
    );
    const silences: number[] = [];
    loop.onBeat((_, silentMs) => silences.push(silentMs));
    await loop.round();
    time.suspend(600_000);
    await loop.round();
    time.setClock(900_000);
    await loop.round();
    time.setClock(-900_000);
    await loop.round();
    expect(silences).toEqual([0, 600_000, 900_000, 0]);
  });

  it.each([
    ['the page of a captive portal', '<html>log in</html>'],
    ['an object without a kind', { metadata: lease('9').metadata }],
    ['an object of another kind', { ...lease('9'), kind: 'Node' }],
    ['the Lease of another node', { ...lease('9'), metadata: { ...lease('9').metadata, name: 'edge-8' } }],
  ])('does not accept %s as the Lease, neither from PUT nor from GET', async (_what, body) => {
    let isCaptive = false;
    const { loop, sent } = world({
      answer: ({ method }) => answered(200, isCaptive ? body : lease(method === 'GET' ? '1' : '2')),
      sleepsMax: 2,
    });
    let beats = 0;
    loop.onBeat(() => {
      beats += 1;
    });
    await loop.round();
    expect(beats).toBe(1);
    isCaptive = true;
    await loop.round();
    expect(sent().slice(-3)).toEqual(['PUT lease', 'GET lease', 'GET lease']);
    expect(beats).toBe(1);
  });

  it('creates no Lease when the answer is not a Node, such as the page of a captive portal', async () => {
    const { loop, sent } = world({
      answer: ({ path }) => (path.includes('/leases') ? refused(404, 'NotFound') : answered(200, { metadata: {} })),
    });
    await loop.round();
    expect(sent()).toEqual(['GET lease', 'GET node']);
    expect(loop.cached()).toBeUndefined();
  });

  it('ends while it reads or creates the Lease when it is stopped', async () => {
    const { loop, sent } = world({ answer: () => timedOut, sleepsMax: 3 });
    await loop.run();
    expect(sent()).toHaveLength(3);
  });

  it('keeps the Lease that it has when it is stopped while a renewal fails', async () => {
    const { loop, sent, stopper } = world({
      answer: ({ method }) => (method === 'GET' ? answered(200, lease('1')) : answered(200, lease('2'))),
    });
    await loop.round();
    stopper.abort();
    await loop.round();
    expect(sent()).toEqual(['GET lease', 'PUT lease']);
    expect(loop.cached()?.metadata.resourceVersion).toBe('2');
  });

  it('does not wait each time that a heartbeat is asked for at once', async () => {
    let asked = 0;
    const { loop, time, sent } = world({
      answer: ({ method }) => {
        if (method === 'PUT' && asked < 3) {
          asked += 1;
          loop.beatNow();
        }
        return answered(200, lease('1'));
      },
      sleepsMax: 1,
    });
    await loop.run();
    expect(sent()).toEqual(['GET lease', 'PUT lease', 'PUT lease', 'PUT lease', 'PUT lease']);
    expect(time.waits).toEqual([10_200]);
  });

  it('waits a share of the interval after the first round, by name, and whole intervals after that', async () => {
    const { loop, time } = world({ answer: () => answered(200, lease('1')), sleepsMax: 4 });
    await loop.run();
    expect(time.waits).toEqual([firstWaitMs(10_000, 'edge-7'), 10_200, 10_200, 10_200]);
  });
});

describe('the first wait', () => {
  it('spreads machines of consecutive names evenly over the interval', () => {
    const tenths = new Array<number>(10).fill(0);
    for (let number = 0; number < 100_000; number += 1) {
      const tenth = Math.floor(firstWaitMs(10_000, `edge-${number}`) / 1_000);
      tenths[tenth] = (tenths[tenth] ?? 0) + 1;
    }
    for (const count of tenths) expect(Math.abs(count - 10_000)).toBeLessThan(400);
  });
});

describe('the times in the answer to a heartbeat', () => {
  const timed = (version: string, interval: string, duration: string) => {
    const { metadata, ...rest } = lease(version);
    const annotations = {
      'nodekeeper.dev/beat-interval-seconds': interval,
      'nodekeeper.dev/lease-duration-seconds': duration,
    };
    return { ...rest, metadata: { ...metadata, annotations } };
  };
  const run = async (leases: readonly object[]) => runAnswered(leases.map((each) => answered(200, each)));
  const runAnswered = async (answers: readonly KubeAnswer[]) => {
    const sleepsMax = answers.length;
    const { api, time, loop } = world({ answer: inOrder([answered(200, lease('0')), ...answers]), sleepsMax });
    await loop.run();
    const bodies = api.requests.filter(({ method }) => method === 'PUT').map(({ body }) => body as KubeObject);
    return {
      waits: time.waits.slice(1),
      durations: bodies.map(({ spec }) => spec?.['leaseDurationSeconds']),
      annotations: bodies.flatMap(({ metadata }) => Object.keys(metadata.annotations ?? {})),
    };
  };

  it('are followed at once when the interval is shorter', async () => {
    const { waits, durations, annotations } = await run([
      lease('1'),
      timed('2', '5', '15'),
      timed('3', '5', '15'),
      lease('4'),
    ]);
    expect(waits).toEqual([5_100, 5_100, 5_100]);
    expect(durations).toEqual([40, 40, 15, 15]);
    expect(annotations).toEqual([]);
  });

  it('are followed after five minutes when the interval is longer, because node-monitor may learn it later', async () => {
    const longer = (count: number) => Array.from({ length: count }, (_, index) => timed(`${index}`, '60', '180'));
    const { waits, durations } = await run([...longer(40), lease('1'), timed('2', '60', '180')]);
    const short = waits.findIndex((wait) => wait !== 10_200);
    expect(short * 10_200).toBeGreaterThanOrEqual(290_000);
    expect(short * 10_200).toBeLessThan(320_000);
    expect(waits.slice(short, 39)).toEqual(waits.slice(short, 39).map(() => 61_200));
    expect(durations.slice(0, short + 1)).toEqual(durations.slice(0, short + 1).map(() => 40));
    // The configured interval again, at once, and the longer one not at once.
    expect(waits.slice(-2)).toEqual([10_200, 10_200]);
  });

  it('are not followed when only a relay asks for a longer interval: it could silence the machine', async () => {
    const asked = (interval: string, isRelayed: boolean): KubeAnswer => ({
      kind: 'answered',
      status: 200,
      body: timed('1', interval, String(3 * Number(interval))),
      isRelayed,
    });
    const lies = Array.from({ length: 60 }, () => asked('3600', true));
    const lied = await runAnswered([...lies, asked('5', true), asked('5', false)]);
    expect(lied.waits).toEqual([...lies.slice(1).map(() => 10_200), 5_100, 5_100]);
    // The cluster confirms it, five minutes after the relay.
    const confirmed = await runAnswered([...lies.map(() => asked('60', true)), asked('60', false), asked('60', true)]);
    expect(confirmed.waits.slice(-3)).toEqual([10_200, 61_200, 61_200]);
  });

  it('are ignored when no policy has them', async () => {
    const { waits, durations } = await run([lease('1'), timed('2', '10', '29'), lease('3')]);
    expect(waits).toEqual([10_200, 10_200]);
    expect(durations).toEqual([40, 40, 40]);
  });
});
