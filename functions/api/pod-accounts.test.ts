/** Admission of the ServiceAccount of a pod: plugin/pkg/admission/serviceaccount/admission_test.go. */
import { describe, expect, it } from 'vitest';
import { apiInMemory } from '../../test/support/api-in-memory.ts';
import { servedWorkloads } from '../../test/support/served-workloads.ts';

const DEFAULT = '/api/v1/namespaces/default';
const DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount';
const VOLUME = expect.stringMatching(/^kube-api-access-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
const MOUNT = { name: VOLUME, mountPath: DIRECTORY, readOnly: true };

const pod = (spec: object = {}, metadata: object = {}) => ({
  metadata: { name: 'p', ...metadata },
  spec: { containers: [{ name: 'c', image: 'i' }], ...spec },
});

function withAccount(account: object = {}) {
  const api = apiInMemory();
  return async (body: object) => {
    // Mirror pods name an existing Node.
    await api.send('POST', '/api/v1/nodes', { body: { metadata: { name: 'n1' } } });
    await api.send('POST', `${DEFAULT}/serviceaccounts`, { body: { metadata: { name: 'bot' }, ...account } });
    return api.send('POST', `${DEFAULT}/pods`, { body });
  };
}

describe('a new pod', () => {
  it('runs as the account default, with a volume of its token in every container', async () => {
    const { body } = await withAccount()(pod({ initContainers: [{ name: 'i', image: 'i' }] }));
    expect(body.spec).toMatchObject({ serviceAccountName: 'default', serviceAccount: 'default' });
    expect(body.spec.volumes).toEqual([
      {
        name: VOLUME,
        projected: {
          defaultMode: 420,
          sources: [
            { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
            { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
            {
              downwardAPI: {
                items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
              },
            },
          ],
        },
      },
    ]);
    expect(body.spec.initContainers[0].volumeMounts).toEqual([MOUNT]);
    expect(body.spec.containers[0].volumeMounts).toEqual([{ ...MOUNT, name: body.spec.volumes[0].name }]);
  });

  it('is refused if its account does not exist', async () => {
    const { code, body } = await withAccount()(pod({ serviceAccountName: 'nope' }));
    expect([code, body.message]).toEqual([
      403,
      'pods "p" is forbidden: error looking up service account default/nope: serviceaccount "nope" not found',
    ]);
  });

  it('finds the account default although it was deleted a moment ago', async () => {
    const api = apiInMemory();
    await api.send('DELETE', `${DEFAULT}/serviceaccounts/default`);
    expect((await api.send('POST', `${DEFAULT}/pods`, { body: pod() })).code).toBe(201);
  });

  it('has the image pull secrets of its account, unless it has its own', async () => {
    const create = withAccount({ imagePullSecrets: [{ name: 'registry' }] });
    const secretsOf = async (spec: object, name: string) =>
      (await create(pod({ serviceAccountName: 'bot', ...spec }, { name }))).body.spec.imagePullSecrets;
    expect(await secretsOf({}, 'a')).toEqual([{ name: 'registry' }]);
    expect(await secretsOf({ imagePullSecrets: [{ name: 'own' }] }, 'b')).toEqual([{ name: 'own' }]);
  });

  it.each([
    [undefined, undefined, true],
    [false, undefined, false],
    [false, true, true],
    [true, false, false],
  ])('with automount %s of the account and %s of the pod: volume %s', async (ofAccount, ofPod, hasVolume) => {
    const create = withAccount({ automountServiceAccountToken: ofAccount });
    const { body } = await create(pod({ serviceAccountName: 'bot', automountServiceAccountToken: ofPod }));
    expect(body.spec.volumes !== undefined).toBe(hasVolume);
  });

  it('keeps a mount of its own at the place of the token, and a volume of the name', async () => {
    const create = withAccount();
    const own = { name: 'mine', mountPath: DIRECTORY };
    const mounted = await create(
      pod({ containers: [{ name: 'c', image: 'i', volumeMounts: [own] }], volumes: [{ name: 'mine', emptyDir: {} }] }),
    );
    expect(mounted.body.spec.volumes).toEqual([{ name: 'mine', emptyDir: {} }]);
    const given = { name: 'kube-api-access-x', emptyDir: {} };
    const { body } = await create(pod({ volumes: [given] }, { name: 'q' }));
    expect(body.spec.volumes).toEqual([given]);
    expect(body.spec.containers[0].volumeMounts).toEqual([{ ...MOUNT, name: given.name }]);
  });
});

describe('a new mirror pod', () => {
  const mirror = (spec: object) =>
    pod({ nodeName: 'n1', ...spec }, { annotations: { 'kubernetes.io/config.mirror': 'hash' } });
  const token = { name: 't', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } };

  it('has no account and no volume', async () => {
    const { code, body } = await withAccount()(mirror({}));
    expect([code, body.spec.serviceAccountName, body.spec.volumes]).toEqual([201, undefined, undefined]);
  });

  it.each([
    [{ serviceAccountName: 'default' }, 'a mirror pod may not reference service accounts'],
    [{ volumes: [{ name: 's', secret: { secretName: 's' } }] }, 'a mirror pod may not reference secrets'],
    [{ volumes: [token] }, 'a mirror pod may not use ServiceAccountToken volume projections'],
  ])('with %j is refused', async (spec, why) => {
    const { code, body } = await withAccount()(mirror(spec));
    expect([code, body.message]).toEqual([403, `pods "p" is forbidden: ${why}`]);
  });
});

describe('a pod that a controller creates', () => {
  const set = (spec: object = {}) => ({
    metadata: { name: 'web' },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: 'web' } },
      template: { metadata: { labels: { app: 'web' } }, spec: pod(spec).spec },
    },
  });
  const SETS = '/apis/apps/v1/namespaces/default/replicasets';

  it('has account and volume as if the API had created it', async () => {
    const cluster = servedWorkloads();
    await cluster.ok('POST', SETS, set());
    await cluster.settle();
    const { items } = await cluster.ok('GET', `${DEFAULT}/pods`);
    expect(items[0].spec).toMatchObject({ serviceAccountName: 'default', volumes: [{ name: VOLUME }] });
    expect(items[0].spec.containers[0].volumeMounts).toEqual([MOUNT]);
  });

  it('is refused without its account, and created after the account', async () => {
    const cluster = servedWorkloads();
    await cluster.ok('POST', SETS, set({ serviceAccountName: 'late' }));
    await cluster.settle();
    const { items: events } = await cluster.ok('GET', `${DEFAULT}/events`);
    expect(events).toContainEqual(
      expect.objectContaining({
        reason: 'FailedCreate',
        message: expect.stringMatching(
          /^Error creating: pods "web-\w+" is forbidden: error looking up service account default\/late: serviceaccount "late" not found$/,
        ),
      }),
    );
    await cluster.ok('POST', `${DEFAULT}/serviceaccounts`, { metadata: { name: 'late' } });
    await cluster.tickAfter(60_000);
    expect((await cluster.ok('GET', `${DEFAULT}/pods`)).items).toHaveLength(1);
  });
});
