/**
 * Law L17: the CPU and the answer of a request are bounded by a constant times its bytes. Each family of requests
 * (test/support/request-families.ts) is sent at a size and at four times that size. Only ratios of
 * the shortest of several runs are compared.
 */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { configmaps } from '../../shared/kinds/configmaps/serve.ts';
import { resources } from '../../shared/kinds/registry.ts';
import type { KubeLease, KubeObject } from '../../shared/kinds/types.ts';
import { apiInMemory } from '../support/api-in-memory.ts';
import { heartbeatInMemory } from '../support/heartbeat-in-memory.ts';
import { type Family, requestFamilies } from '../support/request-families.ts';

/**
 * A planted validation of Leases, in addition to ours. The heartbeat imports it as a function, so the module is
 * replaced.
 */
const planted = vi.hoisted(() => ({ validateLease: undefined as ((lease: KubeLease) => void) | undefined }));
vi.mock(import('../../shared/kinds/leases/validate.ts'), async (original) => {
  const ours = await original();
  return {
    ...ours,
    validateLease(lease, old) {
      planted.validateLease?.(lease);
      return ours.validateLease(lease, old);
    },
  };
});

const BYTES = 4_000;
const GROWTH = 4;
/** A time below this is a matter of the compiler and of the garbage collector. */
const FLOOR_MS = 8;
/** Four times the bytes: 4 is linear, 16 quadratic. */
const SUSPECT_RATIO = 9;
/** Far from it, the small size is measured once: what is quadratic needs sixteen times as long. */
const LINEAR_RATIO = 5;
const EXPONENT_MAX = 1.5;
const ATTEMPTS_MAX = 6;
/** A time above this is no pause of the process: further attempts cannot change the verdict. */
const CLEAR_MS = 200;
const ANSWER_PER_BYTE = 40;
const ANSWER_BASE_BYTES = 64 * 1_024;

/** The grain of the kernel's account of the time of a thread. Milliseconds. */
const CPU_GRAIN_MS = 4;

/** Milliseconds of this thread since the call. Other programs on the machine make it longer by the grain at most. */
function workClock(): () => number {
  const [startMs, start] = [performance.now(), process.threadCpuUsage()];
  return () => {
    const elapsedMs = performance.now() - startMs;
    const { user, system } = process.threadCpuUsage(start);
    return Math.min(elapsedMs, (user + system) / 1_000 + CPU_GRAIN_MS);
  };
}

interface Cost {
  readonly ms: number;
  readonly sentBytes: number;
  readonly answerBytes: number;
}

async function costOf(family: Family, bytes: number): Promise<Cost> {
  const api = family.leases === undefined ? apiInMemory() : await heartbeatInMemory(family.leases);
  const requests = family.requests(bytes);
  const [last] = requests.slice(-1);
  if (last === undefined) throw new Error(`${family.name} sends nothing`);
  for (const { method, path, ...more } of requests.slice(0, -1)) await api.send(method, path, more);
  const { method, path, body, ...more } = last;
  const payload =
    body instanceof Uint8Array ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body ?? ''));
  const send = () => api.send(method, path, { ...more, ...(body === undefined ? {} : { body: payload }) });
  const clock = workClock();
  const answer = await send();
  for (let sent = 1; sent < (family.times ?? 1); sent += 1) await send();
  return {
    ms: clock(),
    sentBytes: payload.length + path.length + JSON.stringify(more).length,
    answerBytes: answer.bytes.length,
  };
}

async function leastMs(family: Family, bytes: number, runs: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < runs; run += 1) least = Math.min(least, (await costOf(family, bytes)).ms);
  return least;
}

interface Verdict {
  readonly broken: readonly string[];
  readonly worstRatio: number;
  readonly worst: string;
  readonly measuredAgain: number;
}

/**
 * How many times as long four times the bytes need: the smaller of two such steps, because one step may cross a limit
 * between a refusal and the whole work. Measured more often only while it looks too much. Undefined: the largest
 * request is so short that its time shows nothing.
 */
async function lastingGrowth(family: Family): Promise<number | undefined> {
  const sizes = sizesOf(family);
  const least = sizes.map(() => Number.POSITIVE_INFINITY);
  let growth = 0;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    growth = Number.POSITIVE_INFINITY;
    for (const [step, size] of sizes.entries()) {
      least[step] = Math.min(least[step] ?? 0, await leastMs(family, size, attempt));
      if (step === 0) continue;
      growth = Math.min(growth, (least[step] ?? 0) / (least[step - 1] ?? 1));
      if (growth < GROWTH ** EXPONENT_MAX) return growth;
    }
    const longestMs = least.at(-1) ?? 0;
    if (longestMs <= FLOOR_MS) return undefined;
    if (attempt > 1 && longestMs > CLEAR_MS) return growth;
  }
  return growth;
}

const sizesOf = ({ bytes: [first, last] = [BYTES, BYTES * GROWTH ** 2] }: Family): readonly number[] =>
  [first, first * GROWTH, first * GROWTH ** 2].filter((size) => size <= last);

async function verdictOn(families: readonly Family[]): Promise<Verdict> {
  const broken: string[] = [];
  let [worstRatio, worst, measuredAgain] = [0, 'none', 0];
  for (const family of families) {
    const [bytes = BYTES] = sizesOf(family);
    const large = await costOf(family, bytes * GROWTH);
    if (large.answerBytes > ANSWER_PER_BYTE * large.sentBytes + ANSWER_BASE_BYTES) {
      broken.push(`${family.name}: ${large.sentBytes} bytes are answered with ${large.answerBytes}`);
    }
    if (large.ms <= FLOOR_MS) continue;
    const { ms } = await costOf(family, bytes);
    if (large.ms <= LINEAR_RATIO * ms) continue;
    if (large.ms <= SUSPECT_RATIO * Math.min(ms, await leastMs(family, bytes, 1))) continue;
    measuredAgain += 1;
    const growth = await lastingGrowth(family);
    if (growth === undefined) continue;
    if (growth > worstRatio) [worstRatio, worst] = [growth, family.name];
    if (growth >= GROWTH ** EXPONENT_MAX) {
      broken.push(`${family.name}: four times the bytes need ${growth.toFixed(1)} times as long`);
    }
  }
  return { broken, worstRatio, worst, measuredAgain };
}

/**
 * Measures repeatedly until something is broken: a pause of the process can make the small size look slow and hide the
 * growth of a planted bug.
 */
async function brokenIn(families: readonly Family[]): Promise<string> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const { broken } = await verdictOn(families);
    if (broken.length > 0) return broken.join();
  }
  return '';
}

describe('the CPU and the answer of a request are bounded by a constant times its bytes (L17):', () => {
  const families = requestFamilies(resources);

  it(`${families.length} families of requests`, async () => {
    expect(families.length).toBeGreaterThan(1_500);
    const { broken, worstRatio, worst, measuredAgain } = await verdictOn(families);
    const growth = `four times the bytes need at most ${worstRatio.toFixed(1)} times as long (${worst})`;
    console.log(`L17: ${families.length} families, ${measuredAgain} measured again, ${growth}`);
    expect(broken).toEqual([]);
  }, 240_000);

  it('finds a validation that compares each item with each other', async () => {
    const data = families.filter(({ name }) => name === 'configmaps: POST in JSON, data, different items');
    expect(data).toHaveLength(1);
    const keysOf = (object: KubeObject) => Object.keys((object as { data?: object }).data ?? {});
    const validate = vi.spyOn(configmaps, 'validate');
    onTestFinished(() => validate.mockRestore());
    validate.mockImplementation((object) => {
      const keys = keysOf(object);
      for (const key of keys) {
        if (keys.filter((other) => other.split('').join() === key).length > 1) throw new Error(key);
      }
      return [];
    });
    // A third size would need most of the time.
    const ofTwoSizes = data.map((family): Family => ({ ...family, bytes: [BYTES, BYTES * GROWTH] }));
    expect(await brokenIn(ofTwoSizes)).toContain('four times the bytes need');
  }, 240_000);

  it('finds a validation of a heartbeat that compares each owner with each other', async () => {
    const owners = families.filter(
      ({ name }) => name === 'heartbeat: merge patch, metadata.ownerReferences, different full items',
    );
    expect(owners).toHaveLength(1);
    onTestFinished(() => {
      planted.validateLease = undefined;
    });
    const textOf = (owner: object) => JSON.stringify(owner).split('').sort().join('');
    planted.validateLease = ({ metadata: { ownerReferences = [] } }) => {
      for (const owner of ownerReferences) {
        if (ownerReferences.filter((other) => textOf(other) === textOf(owner)).length === 0) throw new Error(owner.uid);
      }
    };
    // With the bug, two requests need as long as many without it.
    expect(await brokenIn(owners.map((family): Family => ({ ...family, times: 2 })))).toContain(
      'four times the bytes need',
    );
  }, 240_000);

  it('finds an answer that is much larger than its request', async () => {
    const path = '/api/v1/namespaces/default/configmaps';
    const stored = Array.from({ length: 20 }, (_, index) => ({
      method: 'POST',
      path,
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `c-${index}` }, data: { k: 'v'.repeat(4_000) } },
    }));
    const list: Family = { name: 'a list', requests: () => [...stored, { method: 'GET', path }] };
    expect((await verdictOn([list])).broken).toEqual([expect.stringMatching(/^a list: \d+ bytes are answered with/)]);
  });
});
