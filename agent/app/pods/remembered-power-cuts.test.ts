/**
 * The power fails at every step of the writes of remembered pods, and again at every step after that. Whatever the disk
 * keeps, a machine without the API then starts the newest pods or those before, all of them with all that they use, and
 * it says which.
 */
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { silentLog, timedOut } from '../../../test/support/agent-api.ts';
import { CutDisk, SURVIVALS, type Survival } from '../../../test/support/cut-disk.ts';
import { CUT_ROOT, cutFs } from '../../../test/support/cut-fs.ts';
import { noHeartbeats } from '../../../test/support/memory-heartbeat-file.ts';
import { memoryRuntime } from '../../../test/support/memory-runtime.ts';
import { podLoopParts } from '../../../test/support/pod-loop-parts.ts';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import { stateGenerations } from '../../adapters/system/state-generations.ts';
import { createPodLoop, FIRST_LIST_MS } from '../pod-loop.ts';
import { PodMemory, type Remembered } from './pod-memory.ts';

vi.mock('../../adapters/system/files.ts', async () => (await import('../../../test/support/cut-fs.ts')).cutFiles());
vi.mock('../../../shared/host/directory.ts', async () =>
  (await import('../../../test/support/cut-fs.ts')).cutDirectory(),
);

const DIRECTORY = 'remembered';
const FILES = [DIRECTORY, `${DIRECTORY}/pods.json`, `${DIRECTORY}/pods.previous.json`];
/** More than the steps of all saves. */
const STEPS = 40;
const SAVES = 3;
const REFUSED = 'what this machine ran before cannot be used';

const podOf = (name: string): KubePod => ({
  metadata: { uid: name, name, namespace: 'default' },
  spec: { containers: [{ name: 'main' }] },
});
const STATIC = podOf('static');
const namesOf = (save: number): string[] => [`web-${save}`, `queue-${save}`];
const stateOf = (save: number): Remembered => ({
  pods: namesOf(save).map(podOf),
  configMaps: [
    { namespace: 'default', kind: 'configmap', name: 'c', object: { metadata: {}, data: { a: `${save}` } } },
  ],
  secrets: [{ namespace: 'default', kind: 'secret', name: 's', object: { metadata: {}, data: { a: `${save}` } } }],
  tokens: [{ podUid: `web-${save}`, key: '3600 ', token: `t${save}` }],
});

interface Boot {
  readonly remembered: Remembered | undefined;
  /** The save that it is. 0: none. */
  readonly found: number;
  readonly warnings: readonly Readonly<Record<string, unknown>>[];
  readonly memory: PodMemory;
}

async function boot(): Promise<Boot> {
  const warnings: Readonly<Record<string, unknown>>[] = [];
  const memory = new PodMemory({
    owner: { nodeName: 'edge-1', clusterId: 'c' },
    generations: stateGenerations(`${CUT_ROOT}/${DIRECTORY}`),
    sealer: { seal: async (text) => text, open: async (sealed) => sealed },
    log: { ...silentLog, warn: (message, fields) => void warnings.push({ message, ...fields }) },
  });
  const remembered = await memory.read();
  const found = Array.from({ length: SAVES + 1 }, (_, save) => save).find(
    (save) => save > 0 && isDeepStrictEqual(remembered, stateOf(save)),
  );
  // The law: a whole state, or none.
  if (found === undefined) expect(remembered).toBeUndefined();
  return { remembered, found: found ?? 0, warnings, memory };
}

/** What a machine starts without the API. */
async function startedPods({ remembered }: Boot): Promise<readonly string[]> {
  const time = new SteppedTime(0);
  const runtime = memoryRuntime(time);
  const stop = new AbortController();
  const loop = createPodLoop({
    ...podLoopParts,
    ...{ time, runtime, heartbeats: noHeartbeats(time), staticPods: () => [STATIC] },
    api: { send: async () => timedOut, reconnect() {} },
    memory: { remembered: remembered?.pods ?? [], save: async () => undefined },
  });
  const running = loop.run(stop.signal);
  await time.pass(FIRST_LIST_MS + 1_000);
  stop.abort();
  await running;
  return runtime.asked.map((each) => each.replace('start ', '')).toSorted();
}

/** Saves in order, and a power cut after each of these steps. Calls back after each boot that follows a cut. */
async function live(
  cuts: readonly number[],
  survival: Survival,
  { disk = new CutDisk(), onBoot }: { readonly disk?: CutDisk; readonly onBoot?: (boot: Boot) => Promise<void> } = {},
): Promise<{ readonly disk: CutDisk; readonly fallbacks: number }> {
  cutFs.disk = disk;
  let [durable, tried, fallbacks] = [0, 0, 0];
  for (const cut of [...cuts, Number.POSITIVE_INFINITY]) {
    const started = await boot();
    const { found, warnings, memory } = started;
    if (found < durable || found > tried) {
      throw new Error(`save ${found} after power cuts at ${cuts.join()}: ${durable} was on disk, ${tried} was tried`);
    }
    const isComplete = disk.contentOf(`${DIRECTORY}/pods.json`)?.endsWith('}') === true;
    const isFallback = !isComplete && disk.listed().some((name) => name.endsWith('.json') && !name.includes('next'));
    if (isFallback) {
      const why = expect.stringMatching(/^pods\.json is (missing|not complete)$/);
      const instead = found > 0 ? 'the pods before those' : 'static pods alone';
      expect(warnings).toEqual([{ message: REFUSED, why, instead }]);
    } else if (warnings.length > 0) throw new Error(`warned after power cuts at ${cuts.join()}`);
    fallbacks += isFallback ? 1 : 0;
    await onBoot?.(started);
    disk.cutAfter(cut);
    // One that may not be on disk is saved again.
    for (let save = found + 1; save <= SAVES && !disk.isOff(); save += 1) {
      tried = Math.max(tried, save);
      await memory.save(stateOf(save));
      if (!disk.isOff()) durable = save;
    }
    if (!disk.isOff()) {
      if (disk.listed().join() !== FILES.join()) throw new Error(`left behind: ${disk.listed().join()}`);
      return { disk, fallbacks };
    }
    disk.powerOn(survival);
  }
  throw new Error('the last boot was cut off, too');
}

describe.each(SURVIVALS)('power cuts after which content and names that were not synced are %s', (survival) => {
  it('leave the newest pods or those before, and every save that was finished', async () => {
    for (let first = 0; first <= STEPS; first += 1) {
      for (let second = 0; second <= STEPS; second += 1) {
        await live([first, second], survival);
      }
    }
  });

  it('start all of these pods, and the static ones', async () => {
    const starts = new Set<number>();
    for (let first = 0; first <= STEPS; first += 1) {
      const onBoot = async (started: Boot): Promise<void> => {
        starts.add(started.found);
        const remembered = started.found === 0 ? [] : namesOf(started.found);
        expect(await startedPods(started)).toEqual([...remembered, 'static'].toSorted());
      };
      await live([first], survival, { onBoot });
    }
    // With nothing lost, also the last one before its directory is synced.
    expect([...starts].toSorted()).toEqual(survival === 'lost' ? [0, 1, 2] : [0, 1, 2, 3]);
  });
});

it('fall back to the pods before while the newest have no name', async () => {
  const fallbacks = async (survival: Survival) => {
    let sum = 0;
    for (let first = 0; first <= STEPS; first += 1) sum += (await live([first], survival)).fallbacks;
    return sum;
  };
  expect([await fallbacks('kept'), await fallbacks('lost')]).toEqual([2, 0]);
});

it('has fewer steps than are cut', async () => {
  const { disk } = await live([], 'kept');
  expect(disk.steps).toBeLessThan(STEPS);
  expect(disk.steps).toBeGreaterThan(STEPS / 2);
});

it.each([
  ['a file', 'torn', `${DIRECTORY}/.tmp-pods.next.json`],
  ['its name', 'lost', DIRECTORY],
  ['the name of the directory', 'lost', ''],
] as const)('notices that %s is not synced', async (_what, survival, ignored) => {
  const run = async (): Promise<void> => {
    for (let first = 0; first <= STEPS; first += 1) {
      await live([first], survival, { disk: new CutDisk((name) => name === ignored) });
    }
  };
  await expect(run()).rejects.toThrow();
});
