/** The stop of a pod, over an engine in memory. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Container, KubePod } from '../../../shared/kinds/types.ts';
import { MemoryEngine } from '../../../test/support/memory-engine.ts';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import type { RecordedRuntime } from './recorded-runtime.ts';

let rootDirectory: string;
let time: SteppedTime;
let engine: MemoryEngine;
let runtime: RecordedRuntime['runtime'];
let events: string[];

beforeEach(() => {
  rootDirectory = mkdtempSync(join(tmpdir(), 'nodekeeper-stop-'));
  time = new SteppedTime(1_700_000_000_000);
  engine = new MemoryEngine(rootDirectory, time);
  events = [];
  ({ runtime } = engine.open());
  runtime.onEvent?.((_, { type, reason, message }) => events.push(`${type} ${reason}: ${message}`));
});
afterEach(async () => {
  await runtime.close();
  rmSync(rootDirectory, { recursive: true, force: true });
});

const start = (containers: readonly Container[], initContainers: readonly Container[] = []): Promise<void> =>
  runtime.start({
    metadata: { name: 'web', namespace: 'shop', uid: 'u' },
    spec: { restartPolicy: 'Always', containers: [...containers], initContainers: [...initContainers] },
  } as KubePod);
/** Signals and kills, without the checks. */
const acts = (): readonly string[] => engine.taken().filter((act) => !/^(check|times|start) /.test(act));
/** Passes time until the work has ended. Returns how long that took. Milliseconds. */
async function timeOf(work: Promise<void>, stepMs = 50): Promise<number> {
  let isOver = false;
  const over = work.finally(() => {
    isOver = true;
  });
  over.catch(() => undefined);
  const fromMs = time.monotonicMs();
  await time.pass(0);
  for (let steps = 0; !isOver && steps < 2_000; steps += 1) await time.pass(stepMs);
  await over;
  return time.monotonicMs() - fromMs;
}
const hooked = (name: string, exitCode: number): Container => ({
  name,
  lifecycle: { preStop: { exec: { command: ['exit', String(exitCode)] } } },
});

describe('a stop', () => {
  it('terminates all containers together, and then all that is left', async () => {
    await start([{ name: 'a' }, { name: 'b' }]);
    expect(await timeOf(runtime.stop('u', 30))).toBe(0);
    expect(acts()).toEqual(['SIGTERM a', 'SIGTERM b', 'kill all']);
    expect(await timeOf(runtime.stop('u', 30))).toBe(0);
    expect(acts()).toEqual(['kill all']);
  });

  it('kills what has not terminated in its grace period', async () => {
    engine.ignored.set('a', ['SIGTERM']);
    await start([{ name: 'a' }, { name: 'b' }]);
    const tookMs = await timeOf(runtime.stop('u', 3));
    expect(tookMs).toBeGreaterThanOrEqual(3_000);
    expect(tookMs).toBeLessThanOrEqual(3_250);
    expect(acts()).toEqual(['SIGTERM a', 'SIGTERM b', 'SIGKILL a', 'kill all']);
  });

  it('without a grace period kills at once', async () => {
    await start([hooked('a', 0)]);
    expect(await timeOf(runtime.stop('u', 0))).toBeLessThanOrEqual(250);
    expect(acts()).toEqual(['SIGKILL a', 'kill all']);
  });

  it('can be shortened, and not prolonged', async () => {
    engine.ignored.set('a', ['SIGTERM']);
    await start([{ name: 'a' }]);
    const first = runtime.stop('u', 30);
    await time.pass(1_000);
    const second = runtime.stop('u', 60);
    const third = runtime.stop('u', 4);
    expect(await timeOf(Promise.all([first, second, third]).then(() => undefined))).toBeLessThanOrEqual(4_250);
    expect(time.monotonicMs()).toBeGreaterThanOrEqual(5_000);
    expect(acts()).toEqual(['SIGTERM a', 'SIGKILL a', 'kill all']);
  });

  it.each<[string, readonly string[], readonly string[]]>([
    ['the last one first', [], ['SIGTERM main', 'SIGTERM two', 'SIGTERM one', 'kill all']],
    [
      'by force when the others used the grace period',
      ['SIGTERM'],
      ['SIGTERM main', 'SIGKILL one', 'SIGKILL two', 'SIGKILL main', 'kill all'],
    ],
  ])('ends sidecars after the others, %s', async (_, ignored, expected) => {
    engine.ignored.set('main', ignored);
    const sidecars = ['one', 'two'].map((name): Container => ({ name, restartPolicy: 'Always' }));
    await start([{ name: 'main' }], sidecars);
    await timeOf(runtime.stop('u', 2));
    expect(acts()).toEqual(expected);
  });

  it('fails ten seconds after a kill that did not work, and may be repeated', async () => {
    engine.ignored.set('a', ['SIGTERM', 'SIGKILL']);
    await start([{ name: 'a' }]);
    const stop = runtime.stop('u', 1);
    await expect(timeOf(stop)).rejects.toThrow('processes of pod u still exist 10000 ms after SIGKILL');
    expect(time.monotonicMs()).toBeGreaterThanOrEqual(11_000);
    expect(time.monotonicMs()).toBeLessThanOrEqual(11_500);
    expect(acts().filter((act) => act === 'SIGKILL a').length).toBeGreaterThan(30);
    await expect(runtime.remove('u')).rejects.toThrow('has not been stopped');
    engine.ignored.clear();
    await timeOf(runtime.stop('u', 0));
    await runtime.remove('u');
  });

  it('is continued by the next agent when this one ends', async () => {
    engine.ignored.set('a', ['SIGTERM']);
    await start([{ name: 'a' }]);
    const stop = runtime.stop('u', 30);
    await time.pass(1_000);
    acts();
    await runtime.close();
    await expect(timeOf(stop)).rejects.toThrow('pod u was released before it terminated');
    expect(acts()).toEqual([]);
  });
});

describe('a preStop hook', () => {
  it('precedes SIGTERM', async () => {
    await start([hooked('a', 0)]);
    await timeOf(runtime.stop('u', 30));
    expect([acts(), events]).toEqual([['execute a exit 0', 'SIGTERM a', 'kill all'], []]);
  });

  it('that fails is an event, and the container is terminated all the same', async () => {
    await start([hooked('a', 3)]);
    await timeOf(runtime.stop('u', 30));
    expect([acts(), events]).toEqual([
      ['execute a exit 3', 'SIGTERM a', 'kill all'],
      ['Warning FailedPreStopHook: PreStopHook failed'],
    ]);
  });
});

describe('the restart of one container', () => {
  it('kills it when its grace period is over, and it starts again', async () => {
    engine.ignored.set('a', ['SIGTERM']);
    await start([{ name: 'a' }, { name: 'b' }]);
    const tookMs = await timeOf(runtime.restartContainer!('u', 'a', 2, 'not alive'));
    expect(tookMs).toBeGreaterThanOrEqual(2_000);
    expect(tookMs).toBeLessThanOrEqual(2_250);
    expect(acts()).toEqual(['SIGTERM a', 'SIGKILL a']);
    expect((await runtime.pods())[0]?.containers.map(({ restartCount }) => restartCount)).toEqual([1, 0]);
  });

  it('is given up ten seconds after a kill that did not work, with an event', async () => {
    engine.ignored.set('a', ['SIGTERM', 'SIGKILL']);
    await start([{ name: 'a' }]);
    const tookMs = await timeOf(runtime.restartContainer!('u', 'a', 1, 'not alive'));
    expect(tookMs).toBeGreaterThanOrEqual(11_000);
    expect(tookMs).toBeLessThanOrEqual(11_500);
    expect(events).toEqual([
      'Normal Killing: not alive',
      'Warning FailedKillPod: container a still runs 10 s after SIGKILL',
    ]);
    expect(engine.logged).toEqual(['warn a container survives SIGKILL']);
  });

  it('ends at once when it terminates, and kills no later run', async () => {
    await start([{ name: 'a' }]);
    expect(await timeOf(runtime.restartContainer!('u', 'a', 30, 'not alive'))).toBe(0);
    await time.pass(60_000);
    expect(acts()).toEqual(['SIGTERM a']);
  });

  it('ends when the agent ends', async () => {
    engine.ignored.set('a', ['SIGTERM']);
    await start([{ name: 'a' }]);
    const restart = runtime.restartContainer!('u', 'a', 30, 'not alive');
    await time.pass(1_000);
    await runtime.close();
    expect(await timeOf(restart)).toBe(0);
    expect(acts()).toEqual(['SIGTERM a']);
  });
});
