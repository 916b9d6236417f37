import { describe, expect, it } from 'vitest';
import { apiInMemory } from '../../test/support/api-in-memory.ts';

const DEFAULT = '/api/v1/namespaces/default';
const CLASSES = '/apis/node.k8s.io/v1/runtimeclasses';

const pod = (spec: object = {}, resources: object = {}) => ({
  metadata: { name: 'p' },
  spec: { containers: [{ name: 'c', image: 'i', resources }], ...spec },
});

async function limited(...limits: object[]) {
  const api = apiInMemory();
  await api.send('POST', `${DEFAULT}/limitranges`, { body: { metadata: { name: 'l' }, spec: { limits } } });
  return {
    create: (object: object, kind = 'pods') => api.send('POST', `${DEFAULT}/${kind}`, { body: object }),
    refusal: async (object: object, kind = 'pods') =>
      (await api.send('POST', `${DEFAULT}/${kind}`, { body: object })).body.message,
  };
}

describe('a LimitRange', () => {
  it('sets amounts that a container does not state, and says so in an annotation', async () => {
    const { create } = await limited({
      type: 'Container',
      default: { cpu: '500m', memory: '500Mi' },
      defaultRequest: { cpu: '100m', memory: '200Mi' },
    });
    const { body } = await create(pod({ initContainers: [{ name: 'i', image: 'i' }] }, { limits: { cpu: '300m' } }));
    expect(body.spec.containers[0].resources).toEqual({
      // A request defaults to the container's own limit first.
      requests: { cpu: '300m', memory: '200Mi' },
      limits: { cpu: '300m', memory: '500Mi' },
    });
    expect(body.spec.initContainers[0].resources.requests).toEqual({ cpu: '100m', memory: '200Mi' });
    expect(body.metadata.annotations['kubernetes.io/limit-ranger']).toBe(
      'LimitRanger plugin set: memory request for container c; memory limit for container c; cpu, memory request for init container i; cpu, memory limit for init container i',
    );
    expect(body.status.qosClass).toBe('Burstable');
  });

  it('refuses containers outside its bounds, with all violations of one LimitRange', async () => {
    const { refusal } = await limited({
      type: 'Container',
      min: { cpu: '100m' },
      max: { cpu: '500m' },
      maxLimitRequestRatio: { cpu: '2' },
    });
    expect(await refusal(pod({}, { requests: { cpu: '50m' }, limits: { cpu: '600m' } }))).toBe(
      'pods "p" is forbidden: [minimum cpu usage per Container is 100m, but request is 50m, maximum cpu usage per Container is 500m, but limit is 600m, cpu max limit to request ratio per Container is 2, but provided ratio is 12.000000]',
    );
    expect(await refusal(pod({}, { requests: { cpu: '300m' }, limits: { cpu: '600m' } }))).toBe(
      'pods "p" is forbidden: maximum cpu usage per Container is 500m, but limit is 600m',
    );
  });

  it('bounds the sum of a pod', async () => {
    const { refusal, create } = await limited({ type: 'Pod', max: { memory: '1Gi' } });
    const container = (name: string, memory: string) => ({ name, image: 'i', resources: { limits: { memory } } });
    expect(await refusal(pod({ containers: [container('a', '600Mi'), container('b', '600Mi')] }))).toBe(
      'pods "p" is forbidden: maximum memory usage per Pod is 1Gi, but limit is 1200Mi',
    );
    expect(await refusal(pod())).toBe(
      'pods "p" is forbidden: maximum memory usage per Pod is 1Gi.  No limit is specified',
    );
    expect((await create(pod({ containers: [container('a', '600Mi')] }))).code).toBe(201);
  });

  it('bounds the storage of a claim', async () => {
    const { refusal } = await limited({
      type: 'PersistentVolumeClaim',
      min: { storage: '1Gi' },
      max: { storage: '2Gi' },
    });
    const claim = (storage: string) => ({
      metadata: { name: 'p' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } },
    });
    expect(await refusal(claim('3Gi'), 'persistentvolumeclaims')).toBe(
      'persistentvolumeclaims "p" is forbidden: maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi',
    );
    expect(await refusal(claim('500Mi'), 'persistentvolumeclaims')).toMatch(/minimum storage usage/);
  });
});

describe('a RuntimeClass', () => {
  async function withClass() {
    const api = apiInMemory();
    await api.send('POST', CLASSES, {
      body: {
        metadata: { name: 'sandbox' },
        handler: 'sandbox',
        overhead: { podFixed: { cpu: '250m' } },
        scheduling: { nodeSelector: { pool: 'a' }, tolerations: [{ key: 'sandbox', operator: 'Exists' }] },
      },
    });
    return (spec: object) => api.send('POST', `${DEFAULT}/pods`, { body: pod(spec) });
  }

  it('adds its overhead, node selector and tolerations to a pod', async () => {
    const create = await withClass();
    const { body } = await create({
      runtimeClassName: 'sandbox',
      nodeSelector: { disk: 'ssd' },
      tolerations: [{ key: 'sandbox', operator: 'Exists', effect: 'NoSchedule' }],
    });
    expect(body.spec).toMatchObject({
      overhead: { cpu: '250m' },
      nodeSelector: { disk: 'ssd', pool: 'a' },
    });
    expect(body.spec.tolerations.filter(({ key }: { key: string }) => key === 'sandbox')).toEqual([
      { key: 'sandbox', operator: 'Exists' },
    ]);
  });

  it('refuses a pod that contradicts it, or that names a class that does not exist', async () => {
    const create = await withClass();
    const why = async (spec: object) => (await create(spec)).body.message;
    expect(await why({ runtimeClassName: 'nope' })).toBe(
      'pods "p" is forbidden: pod rejected: RuntimeClass "nope" not found',
    );
    expect(await why({ runtimeClassName: 'sandbox', nodeSelector: { pool: 'b' } })).toBe(
      'pods "p" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[pool] = a; pod.spec.nodeSelector[pool] = b',
    );
    expect(await why({ runtimeClassName: 'sandbox', overhead: { cpu: '1' } })).toBe(
      "pods \"p\" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
    );
    expect(await why({ overhead: { cpu: '1' } })).toBe(
      'pods "p" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead',
    );
  });
});
