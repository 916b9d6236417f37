/**
 * The subresource `resize` of pods. Upstream: test/e2e/common/node/pod_resize.go (patch errors, read and replace,
 * equivalents), test/e2e/node/pod_resize.go (ResourceQuota, LimitRange), pkg/registry/core/pod/strategy_test.go
 * (TestPodResizePrepareForUpdate).
 */
import { describe, expect, it } from 'vitest';
import { apiInMemory, MERGE } from '../support/api-in-memory.ts';

const PODS = '/api/v1/namespaces/default/pods';
const STRATEGIC = 'application/strategic-merge-patch+json';

type Resources = Readonly<Record<string, Readonly<Record<string, string>>>>;
type Containers = Readonly<Record<string, Resources>>;

const containersOf = (containers: Containers) =>
  Object.entries(containers).map(([name, resources]) => ({ name, image: 'i', resources }));

async function withPod(containers: Containers, spec: object = {}) {
  const api = apiInMemory();
  const body = { metadata: { name: 'p' }, spec: { containers: containersOf(containers), ...spec } };
  expect((await api.send('POST', PODS, { body })).code).toBe(201);
  return {
    api,
    /** As the clients of upstream's tests: with the order of the containers. A lost resource is null. */
    patch: (next: Readonly<Record<string, object>>) =>
      api.send('PATCH', `${PODS}/p/resize`, {
        body: {
          spec: {
            '$setElementOrder/containers': Object.keys(next).map((name) => ({ name })),
            containers: Object.entries(next).map(([name, resources]) => ({ name, image: 'i', resources })),
          },
        },
        contentType: STRATEGIC,
      }),
  };
}

const GUARANTEED = { requests: { cpu: '20m', memory: '35Mi' }, limits: { cpu: '20m', memory: '35Mi' } };
const BURSTABLE = { requests: { cpu: '20m', memory: '35Mi' }, limits: { cpu: '35m', memory: '50Mi' } };
const CPU = { requests: { cpu: '20m' } };
const QOS = 'Pod QOS Class may not change as a result of resizing';
const LIMITS = 'resource limits cannot be removed';
const REQUESTS = 'resource requests cannot be removed';
const RENAMED =
  'spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize, spec.containers[1].name: Forbidden: containers may not be renamed or reordered on resize';

describe('a patch is refused', () => {
  it.each<[string, Containers, Readonly<Record<string, object>>, string]>([
    ['RZ-01 a BestEffort pod requests memory', { c1: {} }, { c1: { requests: { memory: '35Mi' } } }, QOS],
    ['RZ-02 a BestEffort pod requests cpu', { c1: {} }, { c1: CPU }, QOS],
    ['RZ-03 a Guaranteed pod loses its limits', { c1: GUARANTEED }, { c1: { limits: null } }, LIMITS],
    ['RZ-04 a Burstable pod loses its limits', { c1: BURSTABLE }, { c1: { limits: null } }, LIMITS],
    [
      'RZ-05 a Burstable pod loses its request of memory',
      { c1: { requests: { memory: '35Mi' } } },
      { c1: { requests: null } },
      REQUESTS,
    ],
    ['RZ-06 a Burstable pod loses its request of cpu', { c1: CPU }, { c1: { requests: null } }, REQUESTS],
    ['RZ-07 the containers change places', { c1: CPU, c2: CPU }, { c2: CPU, c1: CPU }, RENAMED],
    [
      'RZ-09 the requests of a Burstable pod become its limits',
      { c1: BURSTABLE },
      { c1: { requests: BURSTABLE.limits } },
      QOS,
    ],
    [
      'RZ-10 another resource than cpu and memory changes',
      { c1: { requests: { cpu: '20m', 'ephemeral-storage': '1' } } },
      { c1: { requests: { 'ephemeral-storage': '3' } } },
      'only cpu and memory resources are mutable',
    ],
  ])('%s', async (_case, before, after, text) => {
    const { api, patch } = await withPod(before);
    const { body } = await api.send('GET', `${PODS}/p`);
    const refused = await patch(after);
    expect([refused.code, refused.body.message]).toEqual([422, expect.stringContaining(text)]);
    expect((await api.send('GET', `${PODS}/p`)).body).toEqual(body);
  });

  it('RZ-08 the containers get other names', async () => {
    const { api } = await withPod({ c1: GUARANTEED, c2: GUARANTEED });
    const { body } = await api.send('GET', `${PODS}/p`);
    const containers = containersOf({ n1: GUARANTEED, n2: GUARANTEED });
    const refused = await api.send('PUT', `${PODS}/p/resize`, {
      body: { ...body, spec: { ...body.spec, containers } },
    });
    expect([refused.code, refused.body.message]).toEqual([422, expect.stringContaining(RENAMED)]);
  });
});

it('RZ-11 a resize by a replacement is read as the pod itself', async () => {
  const { api } = await withPod({ c1: BURSTABLE });
  const { body } = await api.send('GET', `${PODS}/p/resize`);
  expect(body).toEqual((await api.send('GET', `${PODS}/p`)).body);
  body.spec.containers[0].resources.limits.cpu = '40m';
  const replaced = await api.send('PUT', `${PODS}/p/resize`, { body });
  expect([replaced.code, replaced.body.spec.containers[0].resources.limits.cpu]).toEqual([200, '40m']);
  expect((await api.send('GET', `${PODS}/p`)).body).toEqual(replaced.body);
});

it('RZ-12 limits and requests are added where there were none, in one patch of several containers', async () => {
  const memory = { requests: { memory: '35Mi' } };
  const { patch } = await withPod({ c1: CPU, c2: memory, c3: { requests: { ...CPU.requests, ...memory.requests } } });
  const next = {
    c1: { requests: { cpu: '25m' }, limits: { cpu: '35m' } },
    c2: { requests: { memory: '30Mi' }, limits: { memory: '50Mi' } },
    c3: { requests: { cpu: '20m', memory: '30Mi' } },
  };
  const { code, body } = await patch(next);
  expect([code, body.spec.containers.map(({ resources }: { resources: object }) => resources)]).toEqual([
    200,
    Object.values(next),
  ]);
});

it('RZ-13 a memory limit may become smaller, whatever the resize policy', async () => {
  const { patch } = await withPod({ c1: BURSTABLE });
  const { code, body } = await patch({ c1: { limits: { memory: '40Mi' } } });
  expect([code, body.spec.containers[0].resources.limits.memory]).toEqual([200, '40Mi']);
});

it('RZ-14 a change of the image or of the metadata is dropped', async () => {
  const { api } = await withPod({ c1: BURSTABLE });
  const body = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c1', image: 'other' }] } };
  const patched = await api.send('PATCH', `${PODS}/p/resize`, { body, contentType: STRATEGIC });
  expect(patched.body).toEqual((await api.send('GET', `${PODS}/p`)).body);
  expect([patched.code, patched.body.metadata.generation, patched.body.metadata.labels]).toEqual([200, 1, undefined]);
});

it('RZ-15 a resize beyond the ResourceQuota is refused', async () => {
  const { api, patch } = await withPod({ c1: { requests: { cpu: '300m' } } });
  const hard = { 'requests.cpu': '800m' };
  const quotas = '/api/v1/namespaces/default/resourcequotas';
  await api.send('POST', quotas, { body: { metadata: { name: 'q' }, spec: { hard } } });
  const status = { hard, used: { 'requests.cpu': '700m' } };
  await api.send('PATCH', `${quotas}/q/status`, { body: { status }, contentType: MERGE });
  api.advance(60_000);
  const refused = await patch({ c1: { requests: { cpu: '600m' } } });
  expect([refused.code, refused.body.message]).toEqual([
    403,
    'pods "p" is forbidden: exceeded quota: q, requested: requests.cpu=300m, used: requests.cpu=700m, limited: requests.cpu=800m',
  ]);
});

it('RZ-16 a resize outside a LimitRange is refused', async () => {
  const { api, patch } = await withPod({ c1: BURSTABLE });
  const limits = [{ type: 'Container', min: { cpu: '10m' }, max: { cpu: '50m' } }];
  const body = { metadata: { name: 'l' }, spec: { limits } };
  await api.send('POST', '/api/v1/namespaces/default/limitranges', { body });
  api.advance(60_000);
  const why = async (next: object) => (await patch({ c1: next })).body.message;
  expect(await why({ limits: { cpu: '60m' } })).toContain('maximum cpu usage per Container is 50m, but limit is 60m');
  expect(await why({ requests: { cpu: '5m' } })).toContain('minimum cpu usage per Container is 10m, but request is 5m');
});
