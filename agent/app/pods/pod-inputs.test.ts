import { expect, it } from 'vitest';
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
