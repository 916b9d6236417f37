import { describe, expect, it } from 'vitest';
import { answered, refused, scriptedApi, silentLog, silentMeter, timedOut } from '../../test/support/agent-api.ts';
import { SteppedTime } from '../../test/support/stepped-time.ts';
import type { KubeAnswer } from '../ports/kube-api.ts';
import type { MachineKeys, PublicHalf } from '../ports/machine-keys.ts';
import { createKeyRotation } from './key-rotation.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const START_MS = 1_700_000_000_000;
const half = (keyId: string): PublicHalf => ({ keyId, publicKey: { kty: 'EC', crv: 'P-256', x: keyId, y: keyId } });
const identityOf = (keys: readonly (readonly [string, string])[]): KubeAnswer =>
  answered(200, { metadata: { name: 'n1' }, spec: { keys: keys.map(([keyId, addedAt]) => ({ keyId, addedAt })) } });

const OLD = '2023-01-01T00:00:00Z';
const NEW = '2023-11-14T22:13:20Z';

/** A cluster that enrols keys as the real one does. `answers` come first. */
function world(
  given: { periodMs?: number; enrolled?: [string, string][]; next?: string; answers?: KubeAnswer[] } = {},
) {
  const time = new SteppedTime(START_MS);
  const steps: string[] = [];
  let enrolled = given.enrolled ?? [['k1', OLD]];
  let current = half('k1');
  let next = given.next === undefined ? undefined : half(given.next);
  let signing = 'k1';
  const faults: { held?: Error } = {};
  const api = scriptedApi(({ method, body }) => {
    steps.push(method);
    const first = given.answers?.shift();
    if (first !== undefined) return first;
    if (method === 'POST') {
      const keyId = (body as { spec: { publicKey: { x: string } } }).spec.publicKey.x;
      const signer = enrolled.find(([id]) => id === signing);
      const added = enrolled.find(([id]) => id === keyId) ?? [keyId, NEW];
      enrolled = signer === undefined || signing === keyId ? [added] : [signer, added];
    }
    return identityOf(enrolled);
  });
  const keys: MachineKeys = {
    async held() {
      if (faults.held !== undefined) throw faults.held;
      return { current, next };
    },
    async makeNext() {
      steps.push('make');
      next = half('k2');
      return next;
    },
    signWithNext() {
      steps.push('sign');
      signing = next?.keyId ?? current.keyId;
    },
    signingKeyId: () => signing,
    async adoptNext() {
      steps.push('adopt');
      current = next ?? current;
      next = undefined;
    },
    serverNowMs: () => time.nowMs(),
  };
  const counts: string[] = [];
  const warnings: string[] = [];
  const rotation = createKeyRotation(
    { nodeName: 'n1', keyRotationPeriodMs: given.periodMs ?? 30 * DAY_MS },
    {
      keys,
      api,
      time,
      fraction: () => 0.5,
      log: { ...silentLog, warn: (message, fields) => warnings.push(`${message}: ${fields?.['why']}`) },
      meter: { ...silentMeter, count: (name) => counts.push(name) },
    },
  );
  const stop = new AbortController();
  let isOver = false;
  const run = () => {
    const running = rotation.run(stop.signal).then(() => {
      isOver = true;
    });
    return async () => {
      stop.abort();
      await running;
    };
  };
  return {
    ...{ time, steps, api, keys, rotation, counts, warnings, faults, run },
    isOver: () => isOver,
    signWith: (keyId: string) => {
      signing = keyId;
    },
  };
}

describe('the rotation of keys', () => {
  it('does nothing when keys are never replaced', async () => {
    const { run, time, isOver, steps } = world({ periodMs: 0 });
    run();
    await time.pass(DAY_MS);
    expect([isOver(), steps, time.waits]).toEqual([true, [], []]);
  });

  it('replaces an old key step by step, and proves the new one by a heartbeat', async () => {
    const { run, time, steps, rotation, counts, api, warnings } = world();
    const stop = run();
    await time.pass(HOUR_MS / 2 - 1);
    expect(steps).toEqual([]);
    await time.pass(1);
    expect(steps).toEqual(['GET', 'make', 'POST', 'sign']);
    // Neither a refused heartbeat nor one signed by the old key is a proof.
    rotation.beatAnswered(undefined);
    await time.pass(0);
    rotation.beatAnswered('k1');
    await time.pass(0);
    expect(steps).toHaveLength(4);
    rotation.beatAnswered('k2');
    await time.pass(0);
    expect(steps).toEqual(['GET', 'make', 'POST', 'sign', 'adopt', 'POST']);
    expect(counts).toEqual(['nodekeeper_agent_key_rotations_total']);
    expect(warnings).toEqual([]);
    expect(api.requests.map(({ body }) => (body as { spec?: { publicKey: { x: string } } } | undefined)?.spec)).toEqual(
      [undefined, { publicKey: half('k2').publicKey }, { publicKey: half('k2').publicKey }],
    );
    // The clock is read once a day.
    expect(time.waits.at(-1)).toBe(DAY_MS);
    await stop();
  });

  it('notices within a minute that the new key was refused, and starts again later', async () => {
    const { run, time, steps, signWith, warnings } = world();
    const stop = run();
    await time.pass(HOUR_MS / 2);
    signWith('k1');
    await time.pass(59_999);
    expect(warnings).toEqual([]);
    await time.pass(1);
    expect(warnings).toEqual(['the key cannot be replaced; it stays in use: the new key was refused']);
    await time.pass(60_000);
    expect(steps).toEqual(['GET', 'make', 'POST', 'sign', 'GET', 'sign']);
    await stop();
  });

  it('reads the enrolled keys again after each failure, later and later, and warns once', async () => {
    const { run, time, steps, warnings } = world({ answers: [timedOut, refused(403, 'Forbidden'), answered(200, {})] });
    const stop = run();
    await time.pass(HOUR_MS / 2);
    for (const waitMs of [60_000, 120_000, 240_000]) {
      const before = steps.length;
      await time.pass(waitMs - 1);
      expect(steps).toHaveLength(before);
      await time.pass(1);
      expect(steps.length).toBeGreaterThan(before);
    }
    expect(steps.slice(0, 5)).toEqual(['GET', 'GET', 'GET', 'GET', 'make']);
    expect(warnings).toEqual(['the key cannot be replaced; it stays in use: no answer']);
    await stop();
  });

  it('warns again after a success in between, and begins with the shortest wait', async () => {
    const { run, time, faults, warnings } = world({ enrolled: [['k1', NEW]], answers: [timedOut] });
    const stop = run();
    await time.pass(HOUR_MS / 2 + 60_000);
    expect(time.waits.slice(0, 3)).toEqual([HOUR_MS / 2, 60_000, DAY_MS]);
    faults.held = new Error('no disk');
    await time.pass(DAY_MS);
    expect(warnings.map((each) => each.split(': ')[1])).toEqual(['no answer', 'no disk']);
    expect(time.waits.at(-1)).toBe(60_000);
    await stop();
  });

  it('waits at most an hour after failures', async () => {
    const { run, time, faults } = world();
    faults.held = new Error('no disk');
    const stop = run();
    await time.pass(2 * DAY_MS);
    expect(Math.max(...time.waits)).toBe(HOUR_MS);
    expect(time.waits.slice(1, 8)).toEqual([60_000, 120_000, 240_000, 480_000, 960_000, 1_920_000, HOUR_MS]);
    await stop();
  });

  it('fails when the cluster does not know the key, or does not enrol the new one', async () => {
    const lost = world({ enrolled: [['other', OLD]] });
    const stopLost = lost.run();
    await lost.time.pass(HOUR_MS / 2);
    expect(lost.warnings[0]).toContain('the cluster does not know the key of this machine');
    await stopLost();
    const ignored = world({ next: 'k2', answers: [identityOf([['k1', OLD]]), identityOf([['k1', OLD]])] });
    const stopIgnored = ignored.run();
    await ignored.time.pass(HOUR_MS / 2);
    expect(ignored.warnings[0]).toContain('the answer does not contain the requested keys');
    await stopIgnored();
  });

  it('drops the other keys until ours is the only one', async () => {
    const both: [string, string][] = [
      ['k1', NEW],
      ['k0', OLD],
    ];
    const { run, time, steps, counts } = world({ enrolled: both, answers: [identityOf(both), identityOf(both)] });
    const stop = run();
    await time.pass(HOUR_MS / 2);
    expect([steps, counts]).toEqual([['GET', 'POST'], []]);
    await time.pass(60_000);
    expect(steps).toEqual(['GET', 'POST', 'GET', 'POST']);
    expect(counts).toHaveLength(1);
    await stop();
  });

  it('ends at a stop, wherever it is', async () => {
    const first = world();
    const stopFirst = first.run();
    await stopFirst();
    expect(first.steps).toEqual([]);
    const proving = world();
    const stopProving = proving.run();
    await proving.time.pass(HOUR_MS / 2);
    await stopProving();
    expect(proving.steps.at(-1)).toBe('sign');
  });
});
