import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { pods } from '../kinds/registry.ts';
import type { KubePod } from '../kinds/types.ts';
import { forbidden } from '../kubernetes/status.ts';
import type { AdmittedCall } from './admitted-write.ts';
import { controllerObjects } from './controller-objects.ts';
import type { Creation, MadeObject } from './created-object.ts';

const ofOwner = (uid: string, namespace = 'default') =>
  ({ kind: 'ReplicaSet', object: { metadata: { name: uid, namespace, uid } } }) as const;
const CONTAINERS = { containers: [{ name: 'c', image: 'i' }] };
const PODS = { group: '', resource: 'pods' };
const completed = (given: KubePod): Creation => ({
  kind: 'made',
  object: pods.prepareForCreate({ ...given, spec: { ...CONTAINERS, ...given.spec } }, { nowMs: 0 }),
  given,
  complete: completed,
});
let uids = 0;
const made = (name: string, creationTimestamp = '2026-01-01T00:00:00Z'): MadeObject => {
  uids += 1;
  const given: KubePod = { metadata: { namespace: 'd', name, uid: `u${uids}`, creationTimestamp }, spec: {} };
  // As the volume of the token.
  return { kind: 'made', object: { ...given, spec: { volumes: [{ name: `v${uids}` }] } }, given, complete: completed };
};

type Mutate = (pod: KubePod) => Promise<KubePod>;

/** Pauses end when the test says so. */
function scene(mutate: Mutate, admit: (pod: KubePod) => void = () => {}) {
  let nowMs = 0;
  const calls: AdmittedCall[] = [];
  const pauses: { readonly milliseconds: number; end(): void }[] = [];
  const admitObjects = controllerObjects({
    clock: { nowMs: () => nowMs },
    pause: (milliseconds) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      pauses.push({ milliseconds, end: resolve });
      return promise;
    },
    admission: (call) => {
      calls.push(call);
      return { mutate: async (next) => mutate(next), admit: async (next) => admit(next as KubePod) };
    },
  });
  return {
    admitPods: (owner: ReturnType<typeof ofOwner>, pods: readonly MadeObject[]) => admitObjects(owner, PODS, pods),
    calls,
    pauses,
    advance(milliseconds: number) {
      nowMs += milliseconds;
    },
    /** Gives up the wait that begins. */
    async afterWait<T>(asked: Promise<T>): Promise<T> {
      await turn();
      for (const pause of pauses) pause.end();
      return asked;
    },
  };
}
const hanging = () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const late = (pod: KubePod): KubePod => ({ ...pod, spec: { hostname: 'late' } });
  return { mutate: (pod: KubePod) => promise.then(() => late(pod)), answer: resolve };
};

describe('pods of controllers', () => {
  it('are asked about as a POST of the controller, and completed if they were changed', async () => {
    const { admitPods, calls } = scene(async (pod) =>
      pod.metadata.name === 'a' ? { ...pod, spec: { hostname: 'x' } } : pod,
    );
    const outcome = await admitPods(ofOwner('o'), [made('a'), made('b')]);
    expect(outcome).toMatchObject({
      kind: 'decided',
      objects: [
        { object: { metadata: { name: 'a' }, spec: { hostname: 'x' }, status: { phase: 'Pending' } } },
        { object: { metadata: { name: 'b' }, spec: { volumes: [{}] } } },
      ],
    });
    expect(calls[0]).toMatchObject({
      operation: 'CREATE',
      dryRun: false,
      target: { resource: 'pods', namespace: 'd' },
      user: {
        username: 'system:serviceaccount:kube-system:replicaset-controller',
        groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated'],
      },
    });
  });

  it('are refused with the message of the answer, and tried again after times that double', async () => {
    let isRefused = true;
    const { admitPods } = scene(
      async (pod) => pod,
      () => {
        if (isRefused) throw forbidden({ group: '', resource: 'pods' }, 'a', 'no');
      },
    );
    const retries: unknown[] = [];
    const attempt = async () => {
      const outcome = await admitPods(ofOwner('o'), [made('a')]);
      retries.push(outcome.kind === 'decided' && outcome.objects[0]);
    };
    for (let count = 0; count < 6; count += 1) await attempt();
    const refused = (seconds: number) => ({
      kind: 'refused',
      message: 'pods "a" is forbidden: no',
      retryMs: seconds * 1_000,
    });
    expect(retries).toEqual([5, 10, 20, 40, 60, 60].map(refused));
    isRefused = false;
    await attempt();
    isRefused = true;
    retries.length = 0;
    await attempt();
    expect(retries).toEqual([refused(5)]);
  });

  it('wait for a slow answer in memory: a later sync uses it once, with its own time', async () => {
    const { mutate, answer } = hanging();
    const { admitPods, calls, afterWait } = scene(mutate);
    expect(await afterWait(admitPods(ofOwner('o'), [made('a')]))).toEqual({ kind: 'waiting', retryMs: 1_000 });
    // It does not wait again, and does not ask again.
    expect(await admitPods(ofOwner('o'), [made('a')])).toEqual({ kind: 'waiting', retryMs: 1_000 });
    expect(calls).toHaveLength(1);
    answer();
    await turn();
    const later = '2026-01-01T00:00:09Z';
    expect(await admitPods(ofOwner('o'), [made('a', later)])).toMatchObject({
      kind: 'decided',
      objects: [{ object: { metadata: { name: 'a', creationTimestamp: later }, spec: { hostname: 'late' } } }],
    });
    expect(calls).toHaveLength(1);
    // A pod of the same name that is created again.
    await admitPods(ofOwner('o'), [made('a')]);
    expect(calls).toHaveLength(2);
  });

  it('are asked about again when an answer is old', async () => {
    const { mutate, answer } = hanging();
    const { admitPods, calls, afterWait, advance } = scene(mutate);
    await afterWait(admitPods(ofOwner('o'), [made('a')]));
    answer();
    await turn();
    advance(60_001);
    await admitPods(ofOwner('o'), [made('a')]);
    expect(calls).toHaveLength(2);
  });

  it('under other names are asked about when the question before has ended: an owner has one at a time', async () => {
    const { mutate, answer } = hanging();
    const { admitPods, calls, afterWait } = scene(mutate);
    await afterWait(admitPods(ofOwner('o'), [made('a')]));
    for (const name of ['b', 'c', 'b']) {
      expect(await admitPods(ofOwner('o'), [made(name)])).toMatchObject({ kind: 'waiting' });
    }
    expect(calls).toHaveLength(1);
    answer();
    await turn();
    expect(await admitPods(ofOwner('o'), [made('b')])).toMatchObject({ kind: 'decided' });
    expect(calls).toHaveLength(2);
  });

  it('of a hanging webhook delay few syncs: four wait for a second, and the others for 50 ms', async () => {
    const { mutate } = hanging();
    const { admitPods, pauses, afterWait } = scene((pod) =>
      pod.metadata.name === 'free' ? Promise.resolve(pod) : mutate(pod),
    );
    const asked = Array.from({ length: 8 }, (_, index) => admitPods(ofOwner(`o${index}`), [made('a')]));
    await turn();
    expect(pauses.map(({ milliseconds }) => milliseconds)).toEqual([...Array(4).fill(1_000), ...Array(4).fill(50)]);
    // One that is answered at once does not wait for the others.
    expect(await admitPods(ofOwner('free'), [made('free')])).toMatchObject({ kind: 'decided' });
    expect(new Set((await afterWait(Promise.all(asked))).map(({ kind }) => kind))).toEqual(new Set(['waiting']));
  });

  it('are bounded: an owner beyond 256, or 64 of its namespace, asks when another one has its answer', async () => {
    const { mutate, answer } = hanging();
    const { admitPods, calls, afterWait } = scene(mutate);
    const ask = (count: number, namespace: string) =>
      Promise.all(
        Array.from({ length: count }, (_, index) => admitPods(ofOwner(`${namespace}${index}`, namespace), [made('a')])),
      );
    await afterWait(Promise.all([ask(65, 'a'), ask(64, 'b'), ask(64, 'c'), ask(64, 'd'), ask(1, 'e')]));
    expect(calls).toHaveLength(256);
    answer();
    await turn();
    expect(await admitPods(ofOwner('a0', 'a'), [made('a')])).toMatchObject({ kind: 'decided' });
    expect(await admitPods(ofOwner('a64', 'a'), [made('a')])).toMatchObject({ kind: 'decided' });
    expect(await admitPods(ofOwner('b0', 'b'), [made('a')])).toMatchObject({ kind: 'decided' });
    expect(await admitPods(ofOwner('e0', 'e'), [made('a')])).toMatchObject({ kind: 'decided' });
  });

  it('fail their sync with a fault that is no answer, once', async () => {
    let isBroken = true;
    const { admitPods } = scene(async (pod) => {
      if (isBroken) throw new Error('the store is closed');
      return pod;
    });
    await expect(admitPods(ofOwner('o'), [made('a')])).rejects.toThrow('the store is closed');
    isBroken = false;
    expect(await admitPods(ofOwner('o'), [made('a')])).toMatchObject({ kind: 'decided' });
  });
});
