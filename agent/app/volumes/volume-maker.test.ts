import { describe, expect, it } from 'vitest';
import { answered, refused, silentLog, timedOut } from '../../../test/support/agent-api.ts';
import type { KubeAnswer, KubeRequest } from '../../ports/kube-api.ts';
import { VolumeMaker } from './volume-maker.ts';

const WORKS = '/apis/nodekeeper.dev/v1alpha1/nodevolumes/edge-1';
const VOLUMES = '/api/v1/persistentvolumes';
const claimRef = { namespace: 'default', name: 'data', uid: 'u' };
const volumeOf = (spec: object = {}) => ({
  metadata: { name: 'pvc-1', annotations: { by: 'local' } },
  spec: { volumeMode: 'Filesystem', capacity: { storage: '1Mi' }, storageClassName: 'local', claimRef, ...spec },
});
const MAKE = { id: 'make', provision: volumeOf() };
const REMOVE = { id: 'remove', remove: 'pvc-2' };

function world({
  works = [MAKE],
  list = answered(200, { kind: 'NodeVolumeWorkList', items: works }),
  answer = () => answered(200),
  freeBytes = 1_048_576,
  unlimited,
  remove = async () => {},
}: {
  works?: readonly object[];
  list?: KubeAnswer;
  answer?: (request: KubeRequest) => KubeAnswer;
  freeBytes?: number;
  unlimited?: string;
  remove?: () => Promise<void>;
} = {}) {
  const steps: string[] = [];
  const bodies: unknown[] = [];
  const warned: unknown[] = [];
  const stop = new AbortController();
  const maker = new VolumeMaker({
    nodeName: 'edge-1',
    api: {
      async send(request) {
        steps.push(`${request.method} ${request.path}`);
        if (request.body !== undefined) bodies.push(request.body);
        return request.method === 'GET' ? list : answer(request);
      },
      reconnect() {},
    },
    directories: {
      freeBytes: () => freeBytes,
      async make(name, bytes) {
        steps.push(`make ${name} ${bytes}`);
        return { path: `/volumes/${name}`, unlimited };
      },
      async remove(name) {
        steps.push(`remove ${name}`);
        await remove();
      },
    },
    log: { ...silentLog, warn: (message, fields) => void warned.push([message, fields?.['volume'], fields?.['why']]) },
    stop: stop.signal,
    recordEvent: (subject, { type, reason, message }) =>
      void steps.push(`${type} ${reason} ${JSON.stringify(subject)} ${message}`),
  });
  return { maker, steps, bodies, warned, stop };
}
const CLAIM = JSON.stringify({ kind: 'PersistentVolumeClaim', ...claimRef });
const SUCCEEDED = `Normal ProvisioningSucceeded ${CLAIM} Successfully provisioned volume pvc-1`;
const failed = (why: string) =>
  `Warning ProvisioningFailed ${CLAIM} failed to provision volume with StorageClass "local": nodekeeper.dev/local on edge-1: ${why}`;

async function stepsOf(options: Parameters<typeof world>[0]) {
  const { maker, steps, warned } = world(options);
  maker.requested();
  await maker.settled();
  return { steps: steps.slice(1), warned };
}

describe('a volume that is asked for', () => {
  it.each([200, 201, 409])('is a directory and a PersistentVolume, and then done: %d', async (status) => {
    const answer = ({ method }: KubeRequest) => answered(method === 'POST' ? status : 200);
    const { maker, steps, bodies, warned } = world({ answer });
    maker.requested();
    await maker.settled();
    expect(steps).toEqual([`GET ${WORKS}`, 'make pvc-1 1048576', `POST ${VOLUMES}`, SUCCEEDED, `DELETE ${WORKS}/make`]);
    const { metadata, spec } = volumeOf();
    const annotations = { by: 'local', 'nodekeeper.dev/quota': 'project' };
    expect(bodies).toEqual([
      { metadata: { ...metadata, annotations }, spec: { ...spec, local: { path: '/volumes/pvc-1' } } },
    ]);
    expect(warned).toEqual([]);
  });

  it('is said to be without a limit, and why, when the file system has none', async () => {
    const { maker, steps, bodies } = world({ unlimited: 'tmpfs has no project quotas' });
    maker.requested();
    await maker.settled();
    expect(steps).toContain(`${SUCCEEDED}, without a limit of its size: tmpfs has no project quotas`);
    expect(bodies).toMatchObject([{ metadata: { annotations: { 'nodekeeper.dev/quota': 'none' } } }]);
  });

  it.each([403, 422])(
    'keeps its directory when it is refused: an earlier request may have made it: %d',
    async (status) => {
      const { steps, warned } = await stepsOf({ answer: () => refused(status, 'Reason') });
      expect(steps).toEqual(['make pvc-1 1048576', `POST ${VOLUMES}`, failed(String(status))]);
      expect(warned).toEqual([['a volume could not be made or removed', 'pvc-1', String(status)]]);
    },
  );

  it('is not made when the file system has no room for it, or as a block device', async () => {
    const why = '1048576 bytes are requested, and the file system of this node has 1048575 free';
    expect((await stepsOf({ freeBytes: 1_048_575 })).steps).toEqual([failed(why)]);
    const works = [{ id: 'make', provision: volumeOf({ volumeMode: 'Block' }) }];
    expect((await stepsOf({ works })).steps).toEqual([failed('volumeMode Block is not supported')]);
  });

  it('is reported on an empty claim when its volume names none', async () => {
    const { steps } = await stepsOf({ works: [{ id: 'make', provision: { metadata: { name: 'pvc-1' } } }] });
    expect(steps.slice(2)).toEqual([
      'Normal ProvisioningSucceeded {"kind":"PersistentVolumeClaim","namespace":"","name":"","uid":""} Successfully provisioned volume pvc-1',
      `DELETE ${WORKS}/make`,
    ]);
  });
});

describe('a volume that is no longer wanted', () => {
  it.each([200, 202, 404])('loses its data first, and then its PersistentVolume: %d', async (status) => {
    const { steps } = await stepsOf({ works: [REMOVE], answer: () => answered(status) });
    expect(steps).toEqual(['remove pvc-2', `DELETE ${VOLUMES}/pvc-2`, `DELETE ${WORKS}/remove`]);
  });

  it('stays until its data and its PersistentVolume are removed, and affects no other', async () => {
    const refusing = await stepsOf({ works: [REMOVE], answer: () => refused(500, 'Reason') });
    expect(refusing.steps).toEqual(['remove pvc-2', `DELETE ${VOLUMES}/pvc-2`]);
    expect(refusing.warned).toEqual([['a volume could not be made or removed', 'pvc-2', '500']]);
    const remove = () => Promise.reject(new Error('the disk is read-only'));
    const { steps, warned } = await stepsOf({ works: [REMOVE, MAKE], remove });
    expect(steps).toEqual(['remove pvc-2', 'make pvc-1 1048576', `POST ${VOLUMES}`, SUCCEEDED, `DELETE ${WORKS}/make`]);
    expect(warned).toEqual([['a volume could not be made or removed', 'pvc-2', 'the disk is read-only']]);
  });
});

describe('requests', () => {
  it('while it works are one more run, and after it another', async () => {
    const { maker, steps } = world({ works: [] });
    maker.requested();
    maker.requested();
    maker.requested();
    await maker.settled();
    expect(steps).toEqual([`GET ${WORKS}`, `GET ${WORKS}`]);
    maker.requested();
    await maker.settled();
    expect(steps).toHaveLength(3);
  });

  it('that cannot be listed are logged, unless the agent stops', async () => {
    const { warned } = await stepsOf({ list: timedOut });
    expect(warned).toEqual([['the volumes to make cannot be listed', undefined, 'no answer']]);
    const stopping = world({ list: timedOut });
    stopping.maker.requested();
    stopping.stop.abort();
    await stopping.maker.settled();
    expect(stopping.warned).toEqual([]);
  });

  it('are ignored when the agent stops, also those that were listed', async () => {
    const before = world();
    before.stop.abort();
    before.maker.requested();
    await before.maker.settled();
    expect(before.steps).toEqual([]);
    const during = world();
    during.maker.requested();
    during.stop.abort();
    await during.maker.settled();
    expect(during.steps).toEqual([`GET ${WORKS}`]);
  });
});
