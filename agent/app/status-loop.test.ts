import { describe, expect, it } from 'vitest';
import type { KubeNode } from '../../shared/kinds/types.ts';
import { answered, scriptedApi, timedOut } from '../../test/support/agent-api.ts';
import { SteppedTime } from '../../test/support/stepped-time.ts';
import type { KubeAnswer, KubeRequest } from '../ports/kube-api.ts';
import type { NodeEvent } from '../rules/node-event.ts';
import { StatusLoop, type StatusLoopParts } from './status-loop.ts';

const T0 = Date.UTC(2024, 4, 1, 10);
const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

const nodeWith = (ready: 'True' | 'False' | 'Unknown'): KubeNode => ({
  metadata: { name: 'n' },
  status: { conditions: [{ type: 'Ready', status: ready }] },
});

/** A server that keeps one Node, and a loop that computes Ready from `world.ready`. */
function aWorld(parts: Partial<StatusLoopParts> = {}, answer?: (request: KubeRequest) => KubeAnswer | undefined) {
  const time = new SteppedTime(T0);
  const world = { ready: true, stored: nodeWith('False'), exists: true, registrations: 0, blocked: false };
  const events: NodeEvent[] = [];
  let repeated = 0;
  const listeners: ((node: KubeNode) => void)[] = [];
  const register = async () => {
    world.registrations += 1;
    world.exists = true;
    for (const listener of listeners) listener(world.stored);
    return true;
  };
  const api = scriptedApi((request) => {
    const own = answer?.(request);
    if (own !== undefined) return own;
    if (!world.exists) return answered(404);
    if (request.method === 'PATCH') world.stored = nodeWith(world.ready ? 'True' : 'False');
    return answered(200, world.stored);
  });
  const loop = new StatusLoop({
    settings: {
      nodeName: 'n',
      registerNode: true,
      nodeLeaseDurationSeconds: 40,
      nodeStatusUpdateFrequencyMs: 10_000,
      nodeStatusReportFrequencyMs: 300_000,
    },
    api,
    time,
    fraction: () => 0.5,
    log: SILENT,
    compute: async (node) => ({
      node: { ...node, status: nodeWith(world.ready ? 'True' : 'False').status ?? {} },
      events: [{ type: 'Normal', reason: 'Computed', message: '' }],
    }),
    registration: {
      ensure: async () => world.registrations > 0 || register(),
      again: register,
      onRegistered: (listener) => {
        listeners.push(listener);
      },
    },
    recordEvent: (event) => events.push(event),
    onRepeatedFailure: () => {
      repeated += 1;
    },
    isBlocked: () => world.blocked,
    ...parts,
  });
  const sent = () => api.requests.map(({ method }) => method).join(' ');
  return { world, time, loop, events, sent, repeated: () => repeated };
}

describe('the status loop', () => {
  it('registers, writes once, and is quiet until the report is due', async () => {
    const { loop, time, sent } = aWorld();
    const stop = new AbortController();
    const running = loop.run(stop.signal);
    await time.pass(60_000);
    expect(sent()).toBe('PATCH');
    // A fraction of 0.5 adds no delay: due 300 s after the first.
    await time.pass(250_000);
    expect(sent()).toBe('PATCH PATCH');
    // One hour in passes every 10.2 s, 30 passes per report.
    await time.pass(3_600_000 - 310_000);
    expect(sent()).toBe(Array(12).fill('PATCH').join(' '));
    stop.abort();
    await running;
  });

  it('waits the frequency plus jitter from the end of one pass to the next', async () => {
    const { loop, time } = aWorld();
    const stop = new AbortController();
    const running = loop.run(stop.signal);
    await time.pass(25_000);
    expect(time.waits.filter((wait) => wait > 100)).toEqual([10_200, 10_200, 10_200]);
    stop.abort();
    await running;
  });

  it('reports at once that the node became ready, within the first two minutes', async () => {
    const { world, loop, time, sent } = aWorld();
    world.ready = false;
    const stop = new AbortController();
    const running = loop.run(stop.signal);
    await time.pass(2_050);
    expect(sent()).toBe('PATCH');
    world.ready = true;
    await time.pass(100);
    expect(sent()).toBe('PATCH PATCH');
    expect(world.stored).toEqual(nodeWith('True'));
    stop.abort();
    await running;
  });

  it('does not report it while the runtime is not ready, or the machine shuts down', async () => {
    const { world, loop, time, sent } = aWorld();
    world.ready = false;
    const stop = new AbortController();
    const running = loop.run(stop.signal);
    await time.pass(2_050);
    Object.assign(world, { ready: true, blocked: true });
    await time.pass(1_000);
    expect(sent()).toBe('PATCH');
    world.blocked = false;
    await time.pass(100);
    expect(sent()).toBe('PATCH PATCH');
    stop.abort();
    await running;
  });

  it('leaves a change after the first two minutes to the next pass', async () => {
    const { world, loop, time, sent } = aWorld();
    world.ready = false;
    const stop = new AbortController();
    const running = loop.run(stop.signal);
    await time.pass(124_000);
    const before = sent();
    world.ready = true;
    await time.pass(5_000);
    expect(sent()).toBe(before);
    await time.pass(10_000);
    expect(world.stored).toEqual(nodeWith('True'));
    stop.abort();
    await running;
  });

  it('ends a pass after five failed attempts, and reads the Node in the next', async () => {
    let broken = true;
    const { loop, sent, repeated } = aWorld({}, () => (broken ? timedOut : undefined));
    expect(await loop.pass()).toEqual({ kind: 'failed', reason: 'update node status exceeds retry count' });
    expect(sent()).toBe('GET GET GET GET GET');
    expect(repeated()).toBe(4);
    broken = false;
    expect(await loop.pass()).toEqual({ kind: 'written' });
  });

  it('treats an answer that is not a Node as a failed attempt, both of a read and of a write', async () => {
    let pages = 2;
    const { world, loop, sent } = aWorld({}, ({ method }) => {
      if (pages === 0 || (pages === 1 && method === 'GET')) return undefined;
      pages -= 1;
      return answered(200, '<html>');
    });
    expect(await loop.pass()).toEqual({ kind: 'written' });
    expect(sent()).toBe('GET GET PATCH GET PATCH');
    expect(loop.node()).toEqual(world.stored);
  });

  it('waits as long as a Retry-After asks before the next attempt', async () => {
    const asked = { kind: 'answered', status: 429, body: {}, retryAfterMs: 4_000 } as const;
    let answers = 0;
    const { loop, time } = aWorld({}, () => {
      answers += 1;
      return answers === 1 ? asked : undefined;
    });
    const passing = loop.pass();
    await time.pass(5_000);
    expect(await passing).toEqual({ kind: 'written' });
    expect(time.waits).toEqual([5_000]);
  });

  it('registers a deleted Node again', async () => {
    const { world, loop, sent } = aWorld();
    const { signal } = new AbortController();
    await loop.registerAndPass(signal);
    world.exists = false;
    world.ready = false;
    expect(await loop.registerAndPass(signal)).toEqual({ kind: 'gone' });
    expect(await loop.registerAndPass(signal)).toEqual({ kind: 'written' });
    expect(world.registrations).toBe(2);
    expect(sent()).toBe('PATCH PATCH PATCH');
  });

  it('corrects a condition that the controller wrote, after its copy was invalidated', async () => {
    const { world, loop, sent } = aWorld();
    await loop.registerAndPass(new AbortController().signal);
    world.stored = nodeWith('Unknown');
    expect(await loop.pass()).toEqual({ kind: 'quiet' });
    loop.invalidate();
    expect(await loop.pass()).toEqual({ kind: 'written' });
    expect(world.stored).toEqual(nodeWith('True'));
    expect(sent()).toBe('PATCH GET PATCH');
  });

  it('reads changes of others from the answer to a report, and corrects its own fields in the next pass', async () => {
    const { world, loop, time, sent } = aWorld({}, ({ method }) => {
      if (method !== 'PATCH' || world.stored.metadata.labels === undefined) return undefined;
      // Another client set the condition; this patch contains only the times.
      const answer = answered(200, world.stored);
      world.stored = { ...world.stored, status: nodeWith('True').status ?? {} };
      return answer;
    });
    await loop.registerAndPass(new AbortController().signal);
    world.stored = { metadata: { name: 'n', labels: { by: 'people' } }, status: nodeWith('Unknown').status ?? {} };
    await time.pass(299_000);
    expect(await loop.pass()).toEqual({ kind: 'quiet' });
    await time.pass(1_000);
    expect(await loop.pass()).toEqual({ kind: 'written' });
    expect(loop.node()?.metadata.labels).toEqual({ by: 'people' });
    expect(loop.node()?.status).toEqual(nodeWith('Unknown').status);
    expect(await loop.pass()).toEqual({ kind: 'written' });
    expect(loop.node()?.status).toEqual(nodeWith('True').status);
    expect(await loop.pass()).toEqual({ kind: 'quiet' });
    expect(sent()).toBe('PATCH PATCH PATCH');
  });

  it.each([86_400_000, -86_400_000])('reports when it is due, although the clock was set by %s ms', async (byMs) => {
    const { loop, time, sent } = aWorld();
    await loop.registerAndPass(new AbortController().signal);
    time.setClock(byMs);
    await time.pass(299_000);
    expect(await loop.pass()).toEqual({ kind: 'quiet' });
    await time.pass(1_000);
    expect(await loop.pass()).toEqual({ kind: 'written' });
    expect(sent()).toBe('PATCH PATCH');
  });

  it('records events after the write, and none of failed attempts', async () => {
    let failures = 2;
    const { loop, events } = aWorld({}, ({ method }) => {
      if (method !== 'PATCH' || failures === 0) return undefined;
      failures -= 1;
      return answered(500);
    });
    await loop.pass();
    expect(events).toHaveLength(1);
  });

  it('runs one pass at a time', async () => {
    let computing = 0;
    let most = 0;
    const { loop } = aWorld({
      compute: async (node) => {
        computing += 1;
        most = Math.max(most, computing);
        await Promise.resolve();
        computing -= 1;
        return { node, events: [] };
      },
    });
    await Promise.all([loop.pass(), loop.pass(), loop.pass()]);
    expect(most).toBe(1);
  });

  it('counts new pod CIDRs as a change', async () => {
    const told: (readonly string[])[] = [];
    const { world, loop } = aWorld({
      compute: async (node) => ({ node, events: [] }),
      applyPodCidrs: async (podCidrs) => {
        told.push(podCidrs);
        return told.length === 2;
      },
    });
    world.stored = { ...nodeWith('True'), spec: { podCIDRs: ['10.0.0.0/24'] } };
    await loop.pass();
    expect(await loop.pass()).toEqual({ kind: 'written' });
    expect(await loop.pass()).toEqual({ kind: 'quiet' });
    expect(told[0]).toEqual(['10.0.0.0/24']);
  });

  it('reads a deleted Node again, and registers none, where it may not register', async () => {
    const settings = {
      nodeName: 'n',
      registerNode: false,
      nodeLeaseDurationSeconds: 40,
      nodeStatusUpdateFrequencyMs: 10_000,
      nodeStatusReportFrequencyMs: 300_000,
    };
    const { world, loop, sent } = aWorld({ settings });
    world.exists = false;
    expect(await loop.pass(new AbortController().signal)).toMatchObject({ kind: 'failed' });
    expect([sent(), world.registrations]).toEqual(['GET GET GET GET GET', 0]);
  });

  it('sends nothing once it has stopped', async () => {
    const { loop, sent } = aWorld();
    expect(await loop.pass(AbortSignal.abort())).toEqual({ kind: 'failed', reason: 'stopped' });
    expect(sent()).toBe('');
  });

  it('reads and writes its Node before any registration', async () => {
    const { loop, sent, world } = aWorld();
    expect(await loop.pass(new AbortController().signal)).toEqual({ kind: 'written' });
    expect([sent(), world.registrations]).toEqual(['GET PATCH', 0]);
  });
});
