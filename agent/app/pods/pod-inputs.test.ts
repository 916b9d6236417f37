import { describe, expect, it } from 'vitest';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { answered, refused, silentLog } from '../../../test/support/agent-api.ts';
import { memoryVolumes } from '../../../test/support/memory-volumes.ts';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import { until } from '../../../test/support/until.ts';
import type { KubeAnswer, KubeApi } from '../../ports/kube-api.ts';
import { PodInputs, type PodInputsDependencies } from './pod-inputs.ts';

const inputsWith = (given: Partial<PodInputsDependencies>): PodInputs =>
  new PodInputs({
    api: { send: async () => refused(404, 'NotFound'), reconnect() {} },
    volumes: memoryVolumes(),
    time: new SteppedTime(0),
    fraction: () => 0,
    log: silentLog,
    hostIp: () => undefined,
    allocatable: () => undefined,
    recordEvent: () => {},
    services: {},
    ...given,
  });

/** A pod with a volume of the Secret `s`. */
const podOf = (uid: string): KubePod => ({
  metadata: { uid, name: uid, namespace: 'default' },
  spec: { containers: [{ name: 'main' }], volumes: [{ name: 'data', secret: { secretName: 's' } }] },
});
const secret = answered(200, { kind: 'Secret', metadata: { name: 's' }, data: { key: 'dmFsdWU=' } });

it('volumes that cannot be removed do not keep those of other pods', async () => {
  const memory = memoryVolumes();
  const options = { groupId: undefined, inMemory: false };
  for (const podUid of ['bad', 'gone', 'kept']) memory.makeEmptyDir({ podUid, volume: 'data' }, options);
  const remove = async (podUid: string): Promise<void> => {
    if (podUid === 'bad') throw new Error('EPERM');
    await memory.remove(podUid);
  };
  const warnings: unknown[] = [];
  const inputs = inputsWith({
    volumes: { ...memory, remove },
    log: { ...silentLog, warn: (_, fields) => void warnings.push(fields?.['podUid']) },
  });
  inputs.keepOnly(new Set(['kept']));
  await until(() => warnings.length > 0, { withinMs: 5_000, what: 'a warning' });
  expect(memory.podUids()).toEqual(['bad', 'kept']);
  expect(warnings).toEqual(['bad']);
});

it('a pod that is removed while its objects are read again leaves no files', async () => {
  const volumes = memoryVolumes();
  const time = new SteppedTime(0);
  const stop = new AbortController();
  const pending: (() => void)[] = [];
  let answersAtOnce = true;
  const send = (): Promise<KubeAnswer> =>
    answersAtOnce
      ? Promise.resolve(secret)
      : new Promise((resolve) => {
          pending.push(() => resolve(secret));
        });
  const inputs = inputsWith({ api: { send, reconnect() {} }, volumes, time });
  await inputs.prepare(podOf('p1'));
  expect(volumes.podUids()).toEqual(['p1']);
  answersAtOnce = false;
  const running = inputs.run(stop.signal);
  await time.pass(7_200_000);
  expect(pending).toHaveLength(1);
  await inputs.remove('p1');
  for (const resolve of pending) resolve();
  await time.pass(1_000);
  expect(volumes.podUids()).toEqual([]);
  stop.abort();
  await running;
});

it('objects of a removed pod are forgotten although its volumes cannot be removed', async () => {
  let reads = 0;
  const api: KubeApi = {
    async send() {
      reads += 1;
      return secret;
    },
    reconnect() {},
  };
  const remove = () => Promise.reject(new Error('EPERM'));
  const inputs = inputsWith({ api, volumes: { ...memoryVolumes(), remove } });
  await inputs.prepare(podOf('p1'));
  await expect(inputs.remove('p1')).rejects.toThrow('EPERM');
  await inputs.prepare(podOf('p2'));
  expect(reads).toBe(2);
});

it('objects that cannot be read again are reported, and the container waits', async () => {
  const warnings: unknown[] = [];
  const inputs = inputsWith({
    api: { send: () => Promise.reject(new Error('no route')), reconnect() {} },
    log: { ...silentLog, warn: (message) => void warnings.push(message) },
  });
  await inputs.readMissing(podOf('p1'));
  expect(warnings).toEqual(['the objects of a pod cannot be read']);
});

describe('the inputs of a container', () => {
  const MAIN = { name: 'main', volumeMounts: [{ name: 'data', mountPath: '/data' }] };
  const withSecret: KubeApi = { send: async () => secret, reconnect() {} };
  const fault = (message: string) => ({ kind: 'notReady', reason: 'CreateContainerConfigError', message });

  it('are not ready before the volumes are set up, if it mounts one', async () => {
    const inputs = inputsWith({ api: withSecret });
    const pod = podOf('p1');
    expect(inputs.inputsOf(pod, MAIN)).toEqual(fault('the volumes of the pod are not set up yet'));
    expect(inputs.inputsOf(pod, { name: 'main' })).toEqual({ kind: 'ready', variables: {}, mounts: [] });
    await inputs.prepare(pod);
    const mount = {
      source: '/volumes/p1/data',
      target: '/data',
      readOnly: true,
      isFile: false,
      isPart: false,
      identity: '0:0',
    };
    expect(inputs.inputsOf(pod, MAIN)).toMatchObject({ kind: 'ready', mounts: [mount] });
  });

  it('are not ready with a resolv.conf of ours before it is written, and then mount it unless the pod has its own', async () => {
    const inputs = inputsWith({ api: withSecret, resolverOf: () => 'nameserver 10.0.0.1\n' });
    const pod = podOf('p1');
    expect(inputs.inputsOf(pod, { name: 'main' })).toEqual(fault('the volumes of the pod are not set up yet'));
    await inputs.prepare(pod);
    const targets = (mountPath: string) => {
      const ready = inputs.inputsOf(pod, { name: 'main', volumeMounts: [{ name: 'data', mountPath }] });
      return ready.kind === 'ready'
        ? ready.mounts.map(({ target, source, replacesMachine, readOnly }) => [
            target,
            source,
            replacesMachine,
            readOnly,
          ])
        : ready;
    };
    expect(targets('/data')).toEqual([
      ['/data', '/volumes/p1/data', undefined, true],
      ['/etc/resolv.conf', '/volumes/p1/.resolver/resolv.conf', true, true],
    ]);
    expect(targets('/etc/resolv.conf')).toEqual([['/etc/resolv.conf', '/volumes/p1/data', undefined, true]]);
  });

  it('name a volume that the pod lacks, and a sub path that cannot be used', async () => {
    const volumes = {
      ...memoryVolumes(),
      subPathOf() {
        throw new Error('it is outside');
      },
    };
    const events: string[] = [];
    const recordEvent = (_pod: KubePod, { reason }: { reason: string }) => void events.push(reason);
    const inputs = inputsWith({ api: withSecret, volumes, recordEvent });
    const pod = podOf('p1');
    await inputs.prepare(pod);
    const other = { name: 'main', volumeMounts: [{ name: 'other', mountPath: '/data' }] };
    expect(inputs.inputsOf(pod, other)).toMatchObject({
      kind: 'notReady',
      message: expect.stringContaining('"other"'),
    });
    const part = { name: 'main', volumeMounts: [{ name: 'data', mountPath: '/data', subPath: 'a' }] };
    expect(inputs.inputsOf(pod, part)).toEqual(
      fault('failed to prepare subPath for volumeMount of container "main": it is outside'),
    );
    expect(events).toEqual([]);
  });
});

describe('the volumes of a pod', () => {
  it('are read again every five minutes, also after a read that failed', async () => {
    const time = new SteppedTime(0);
    const stop = new AbortController();
    const warnings: unknown[] = [];
    const reads: number[] = [];
    let isBroken = false;
    const volumes = memoryVolumes();
    const inputs = inputsWith({
      api: {
        async send() {
          reads.push(time.monotonicMs());
          if (isBroken) throw new Error('a bug');
          return secret;
        },
        reconnect() {},
      },
      time,
      volumes,
      log: { ...silentLog, warn: (message, fields) => void warnings.push([message, fields?.['pod'], fields?.['why']]) },
    });
    await inputs.prepare(podOf('p1'));
    const running = inputs.run(stop.signal);
    await time.pass(299_999);
    expect(reads).toEqual([0]);
    isBroken = true;
    await time.pass(1);
    expect(reads).toEqual([0, 300_000]);
    expect(warnings).toEqual([['the volumes of a pod could not be refreshed', 'p1', 'a bug']]);
    isBroken = false;
    await time.pass(300_000);
    expect(reads).toEqual([0, 300_000, 600_000]);
    stop.abort();
    await running;
  });

  it('wake the loop when they are set up, which otherwise waits for an hour', async () => {
    const time = new SteppedTime(0);
    const stop = new AbortController();
    const inputs = inputsWith({ api: { send: async () => secret, reconnect() {} }, time });
    const running = inputs.run(stop.signal);
    await time.pass(0);
    await inputs.prepare(podOf('p1'));
    await time.pass(0);
    expect(time.waits).toEqual([3_600_000, 60_000]);
    stop.abort();
    await running;
  });

  it('are no reason to read before they could be set up', async () => {
    const time = new SteppedTime(0);
    const stop = new AbortController();
    const inputs = inputsWith({ time });
    await expect(inputs.prepare(podOf('p1'))).rejects.toThrow(
      'MountVolume.SetUp failed for volume "data" : secret "s" not found',
    );
    const running = inputs.run(stop.signal);
    await time.pass(0);
    expect(time.waits).toEqual([3_600_000]);
    stop.abort();
    await running;
  });

  it('are removed once by two calls, and set up anew after that, also when the removal failed', async () => {
    const memory = memoryVolumes();
    const removal = Promise.withResolvers<void>();
    const order: string[] = [];
    const volumes = {
      ...memory,
      remove(podUid: string) {
        order.push(`remove ${podUid}`);
        return removal.promise;
      },
      writeFiles() {
        order.push('write');
      },
    };
    const inputs = inputsWith({ api: { send: async () => secret, reconnect() {} }, volumes });
    const outcomes = Promise.allSettled([inputs.remove('p1'), inputs.remove('p1')]);
    const prepared = inputs.prepare(podOf('p1'));
    await new SteppedTime(0).pass(0);
    expect(order).toEqual(['remove p1']);
    removal.reject(new Error('EPERM'));
    await prepared;
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(order).toEqual(['remove p1', 'write']);
    await expect(inputs.remove('p1')).rejects.toThrow('EPERM');
    expect(order).toEqual(['remove p1', 'write', 'remove p1']);
  });
});

describe('the volume of a claim', () => {
  const pod: KubePod = {
    metadata: { uid: 'p1', name: 'p1', namespace: 'default' },
    spec: {
      containers: [{ name: 'main' }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'c1' } }],
    },
  };
  const claim = answered(200, {
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: 'c1',
      namespace: 'default',
      uid: 'u1',
      annotations: { 'pv.kubernetes.io/bind-completed': 'yes' },
    },
    spec: { volumeName: 'v1' },
  });
  const volume = answered(200, {
    kind: 'PersistentVolume',
    metadata: { name: 'v1' },
    spec: { local: { path: '/mnt/v1' }, claimRef: { namespace: 'default', name: 'c1', uid: 'u1' } },
  });
  const failure = (message: string) => `MountVolume.SetUp failed for volume "data" : ${message}`;

  it('is read once, and is then the same directory without the API', async () => {
    const volumes = memoryVolumes();
    const answers = [refused(503, 'later'), claim, volume];
    const asked: string[] = [];
    const send: KubeApi['send'] = async ({ path }) => {
      asked.push(path);
      return answers.shift() ?? refused(500, 'no more');
    };
    const inputs = inputsWith({ api: { send, reconnect() {} }, volumes });
    await expect(inputs.prepare(pod)).rejects.toThrow(
      failure('/api/v1/namespaces/default/persistentvolumeclaims/c1: 503'),
    );
    await inputs.prepare(pod);
    await inputs.prepare(pod);
    expect(volumes.linkedPath({ podUid: 'p1', volume: 'data' })).toBe('/mnt/v1');
    expect(asked).toHaveLength(3);
    const restarted = inputsWith({ api: { send: async () => refused(503, 'later'), reconnect() {} }, volumes });
    await restarted.prepare(pod);
  });

  it('is not set up with a claim that is refused or has no directory here', async () => {
    const volumes = memoryVolumes();
    volumes.linkTo({ podUid: 'p1', volume: 'data' }, '/mnt/old');
    const inputs = inputsWith({ volumes });
    await expect(inputs.prepare(pod)).rejects.toThrow(
      failure('/api/v1/namespaces/default/persistentvolumeclaims/c1: 404'),
    );
    const linkTo = () => {
      throw new Error('no such directory');
    };
    const answers = [claim, volume];
    const send = async () => answers.shift() ?? refused(500, 'no more');
    const missing = inputsWith({ api: { send, reconnect() {} }, volumes: { ...memoryVolumes(), linkTo } });
    await expect(missing.prepare(pod)).rejects.toThrow(failure('no such directory'));
  });

  it('is not known to a pod from memory that had none', async () => {
    const inputs = inputsWith({ remembered: { configMaps: [], secrets: [], tokens: [] } });
    await expect(inputs.prepare(pod, true)).rejects.toThrow(failure('the claim was not read yet'));
  });
});
