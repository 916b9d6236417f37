import { describe, expect, it } from 'vitest';
import { alwaysEmptyResources } from '../../shared/kinds/always-empty/serve.ts';
import type { ResourceDescriptor } from '../../shared/kinds/descriptor.ts';
import { resources } from '../../shared/kinds/registry.ts';
import { APPLY, apiInMemory, eventsOf, JSON_PATCH, MERGE, TABLE } from '../../test/support/api-in-memory.ts';
import { APPLICATION_OBJECTS } from '../../test/support/application-objects.ts';
import { findDescriptor } from '../../test/support/find-descriptor.ts';
import { PROTOBUF, protobufBody } from '../../test/support/protobuf-body.ts';

const pathOf = ({ group, version, resource, namespaced }: ResourceDescriptor): string =>
  `${group === '' ? '/api' : `/apis/${group}`}/${version}${namespaced ? '/namespaces/default' : ''}/${resource}`;
const collectionOf = (resource: string): string => pathOf(findDescriptor(resource) as ResourceDescriptor);
const objectOf = (resource: string, name = 'a'): Record<string, unknown> => ({
  ...APPLICATION_OBJECTS[resource],
  metadata: { name },
});

const kinds = Object.keys(APPLICATION_OBJECTS);

it.each([
  ['jobs', ['orphan']],
  ['replicationcontrollers', ['orphan']],
  ['replicasets', undefined],
])('a DELETE of %s without a policy leaves the finalizers %j', async (resource, finalizers) => {
  const api = apiInMemory();
  const path = collectionOf(resource);
  await api.send('POST', path, { body: objectOf(resource) });
  const { body } = await api.send('DELETE', `${path}/a`);
  expect(body.metadata?.finalizers).toEqual(finalizers);
  await api.send('POST', path, { body: objectOf(resource, 'b') });
  const background = await api.send('DELETE', `${path}/b?propagationPolicy=Background`);
  expect(background.body.status).toBe('Success');
});

it('a policy of a DELETE replaces an earlier one, and the finalizers of others stay', async () => {
  const api = apiInMemory();
  const path = collectionOf('configmaps');
  const remove = async (name: string, policy: string) => {
    const { body } = await api.send('DELETE', `${path}/${name}${policy && `?propagationPolicy=${policy}`}`);
    return body.metadata?.finalizers ?? body.status;
  };
  await api.send('POST', path, { body: { ...objectOf('configmaps'), metadata: { name: 'a', finalizers: ['x.y/z'] } } });
  expect(await remove('a', 'Foreground')).toEqual(['x.y/z', 'foregroundDeletion']);
  expect(await remove('a', '')).toEqual(['x.y/z', 'foregroundDeletion']);
  expect(await remove('a', 'Orphan')).toEqual(['x.y/z', 'orphan']);
  expect(await remove('a', 'Background')).toEqual(['x.y/z']);
  await api.send('POST', path, {
    body: { ...objectOf('configmaps'), metadata: { name: 'b', finalizers: ['orphan'] } },
  });
  expect(await remove('b', 'Foreground&dryRun=All')).toEqual(['foregroundDeletion']);
  expect(await remove('b', 'Foreground')).toEqual(['foregroundDeletion']);
  expect(await remove('b', 'Background')).toBe('Success');
  expect((await api.send('GET', `${path}/b`)).code).toBe(404);
});

it('a quota counts the objects of every kind when they are created', async () => {
  const api = apiInMemory();
  const counted = kinds.filter((each) => (findDescriptor(each) as ResourceDescriptor).namespaced);
  const nameOf = (resource: string): string => {
    const { group } = findDescriptor(resource) as ResourceDescriptor;
    return `count/${resource}${group === '' ? '' : `.${group}`}`;
  };
  const amounts = (amount: string) => Object.fromEntries(counted.map((each) => [nameOf(each), amount]));
  const quotas = collectionOf('resourcequotas');
  await api.send('POST', quotas, { body: { metadata: { name: 'all' }, spec: { hard: amounts('9') } } });
  const status = { hard: amounts('9'), used: amounts('1') };
  await api.send('PATCH', `${quotas}/all/status`, { body: { status }, contentType: MERGE });
  for (const each of counted) {
    expect((await api.send('POST', collectionOf(each), { body: objectOf(each) })).code, each).toBe(201);
  }
  expect((await api.send('GET', `${quotas}/all`)).body.status.used).toEqual(amounts('2'));
});

it('a write of the status of a Deployment changes no label', async () => {
  const api = apiInMemory();
  const path = '/apis/apps/v1/namespaces/default/deployments';
  const template = { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };
  const spec = { selector: { matchLabels: { app: 'a' } }, template };
  await api.send('POST', path, { body: { metadata: { name: 'a', labels: { set: 'before' } }, spec } });
  const patch = { metadata: { labels: { set: 'after' } }, status: { readyReplicas: 1, replicas: 1 } };
  const { body } = await api.send('PATCH', `${path}/a/status`, { body: patch, contentType: MERGE });
  expect(body.metadata.labels).toEqual({ set: 'before' });
  expect(body.status.readyReplicas).toBe(1);
});

/** Kinds with a finalizer from their creation. */
const PROTECTED = ['persistentvolumeclaims', 'persistentvolumes'];

describe('every kind that applications use', () => {
  it('has an object in this test', () => {
    const older =
      'events namespaces nodes pods leases poddisruptionbudgets priorityclasses volumeattachments csinodes customresourcedefinitions';
    const others = [...older.split(' '), 'daemonsets', ...alwaysEmptyResources.map(({ resource }) => resource)];
    const own = resources.filter(({ group }) => group === 'nodekeeper.dev').map(({ resource }) => resource);
    const served = resources.filter(({ servedFrom }) => servedFrom === undefined).map(({ resource }) => resource);
    expect(served.filter((each) => !others.includes(each) && !own.includes(each)).sort()).toEqual(kinds);
  });

  it.each(kinds)(
    '%s: is created, listed, watched, printed, patched, applied, replaced and deleted',
    async (resource) => {
      const api = apiInMemory();
      const all = collectionOf(resource);
      const created = await api.send('POST', all, { body: objectOf(resource) });
      expect(created.code, created.text).toBe(201);
      const { kind, apiVersion } = created.body;
      const listed = await api.send('GET', `${all}?fieldSelector=metadata.name%3Da`);
      expect(listed.body).toMatchObject({ kind: expect.stringMatching(/List$/), items: [{ metadata: { name: 'a' } }] });
      const table = await api.send('GET', `${all}/a`, { accept: TABLE });
      expect(table.body.rows[0].cells).toHaveLength(table.body.columnDefinitions.length);
      expect(table.body.rows[0].cells).not.toContain(undefined);
      const annotate = { body: { metadata: { annotations: { note: 'x' } } }, contentType: MERGE };
      const patched = await api.send('PATCH', `${all}/a`, annotate);
      expect(patched.body.metadata.annotations, patched.text).toMatchObject({ note: 'x' });
      // Only those of a Deployment count.
      const raised = resource === 'deployments' ? 1 : 0;
      expect(patched.body.metadata.generation ?? 0).toBe((created.body.metadata.generation ?? 0) + raised);
      const same = await api.send('PUT', `${all}/a`, { body: patched.body });
      expect(same.body.metadata.resourceVersion, 'a write without a change').toBe(
        patched.body.metadata.resourceVersion,
      );
      const applied = await api.send('PATCH', `${all}/b?fieldManager=test`, {
        body: { apiVersion, kind, ...objectOf(resource, 'b') },
        contentType: APPLY,
      });
      expect(applied.code, applied.text).toBe(201);
      expect((await api.send('DELETE', `${all}/a?propagationPolicy=Background`)).code).toBe(200);
      const isHeld = PROTECTED.includes(resource);
      const release = (name: string) =>
        api.send('PATCH', `${all}/${name}`, { body: { metadata: { finalizers: null } }, contentType: MERGE });
      if (isHeld) await release('a');
      const events = eventsOf(
        await api.send(
          'GET',
          `${all}?watch=1&timeoutSeconds=1&resourceVersion=${created.body.metadata.resourceVersion}&fieldSelector=metadata.name!%3Dkubernetes`,
        ),
      );
      const marked = isHeld ? ['MODIFIED'] : [];
      expect(events.map(({ type }) => type)).toEqual(['MODIFIED', 'ADDED', ...marked, 'DELETED']);
      expect((await api.send('DELETE', `${all}?propagationPolicy=Background`)).code).toBe(200);
      if (isHeld) await release('b');
      expect((await api.send('GET', `${all}/b`)).code).toBe(404);
      expect(api.faults).toEqual([]);
    },
  );

  it.each(kinds)('%s: means the same in protobuf', async (resource) => {
    const descriptor = findDescriptor(resource) as ResourceDescriptor;
    const apiVersion = descriptor.group === '' ? 'v1' : `${descriptor.group}/${descriptor.version}`;
    const object = { apiVersion, kind: descriptor.kind, ...objectOf(resource) };
    const [json, protobuf] = await Promise.all(
      [{ body: object }, { body: protobufBody(object), contentType: PROTOBUF }].map((send) =>
        apiInMemory().send('POST', pathOf(descriptor), send),
      ),
    );
    expect(protobuf?.body).toEqual(json?.body);
  });

  it.each(kinds)('%s: has no namespace of its own making, and a name that is checked', async (resource) => {
    const api = apiInMemory();
    const body = { ...objectOf(resource), metadata: { name: 'A_b/c' } };
    const nameCause = expect.objectContaining({ field: 'metadata.name' });
    expect(await api.send('POST', collectionOf(resource), { body })).toMatchObject({
      code: 422,
      body: { reason: 'Invalid', details: { causes: expect.arrayContaining([nameCause]) } },
    });
  });
});

const created = async (resource: string, more: object = {}) =>
  (await apiInMemory().send('POST', collectionOf(resource), { body: { ...objectOf(resource), ...more } })).body;

/** Message and fields of the causes of a refused creation. */
async function refused(resource: string, more: object): Promise<[field: string, message: string][]> {
  const { code, body } = await apiInMemory().send('POST', collectionOf(resource), {
    body: { ...objectOf(resource), ...more },
  });
  expect(code).toBe(422);
  return body.details.causes.map(({ field, message }: { field: string; message: string }) => [field, message]);
}

describe('a ConfigMap', () => {
  it('has keys that can be file names, each in one of its bags', async () => {
    const text =
      "Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
    expect(await refused('configmaps', { data: { 'a b': '' } })).toEqual([['data[a b]', text]]);
    expect(await refused('configmaps', { data: { a: '' }, binaryData: { a: '' } })).toEqual([
      ['data[a]', 'Invalid value: "a": duplicate of key present in binaryData'],
    ]);
    expect(await refused('configmaps', { data: { '..x': '' } })).toEqual([
      ['data[..x]', `Invalid value: "..x": must not start with '..'`],
    ]);
  });

  it('that is immutable changes its metadata only', async () => {
    const api = apiInMemory();
    const all = collectionOf('configmaps');
    await api.send('POST', all, { body: { ...objectOf('configmaps'), immutable: true } });
    const patch = (body: object) => api.send('PATCH', `${all}/a`, { body, contentType: MERGE });
    expect(await patch({ data: { key: 'other' } })).toMatchObject({
      code: 422,
      body: {
        details: { causes: [{ field: 'data', message: 'Forbidden: field is immutable when `immutable` is set' }] },
      },
    });
    expect(await patch({ immutable: false })).toMatchObject({
      code: 422,
      body: { details: { causes: [{ field: 'immutable' }] } },
    });
    expect(await patch({ metadata: { labels: { a: 'b' } } })).toMatchObject({ code: 200 });
  });
});

describe('a Secret', () => {
  it('merges stringData into data, and never returns it', async () => {
    const secret = await created('secrets', { data: { a: 'eA==', key: 'eA==' }, stringData: { key: 'välue' } });
    expect(secret).toMatchObject({
      type: 'Opaque',
      data: { a: 'eA==', key: Buffer.from('välue').toString('base64') },
    });
    expect(secret.stringData).toBeUndefined();
  });

  it('is refused with data that is not base64', async () => {
    const body = { ...objectOf('secrets'), data: { key: 'a*b=' } };
    expect(await apiInMemory().send('POST', collectionOf('secrets'), { body })).toMatchObject({
      code: 400,
      body: { message: expect.stringContaining('illegal base64 data at input byte 1') },
    });
  });

  it.each([
    ['kubernetes.io/service-account-token', {}, ['metadata.annotations[kubernetes.io/service-account.name]']],
    ['kubernetes.io/dockercfg', {}, ['data[.dockercfg]']],
    ['kubernetes.io/dockerconfigjson', { '.dockerconfigjson': '[]' }, ['data[.dockerconfigjson]']],
    ['kubernetes.io/basic-auth', {}, ['data[username]', 'data[password]']],
    ['kubernetes.io/ssh-auth', { 'ssh-privatekey': '' }, ['data[ssh-privatekey]']],
    ['kubernetes.io/tls', { 'tls.crt': '' }, ['data[tls.key]']],
  ])('of type %s has its keys', async (type, stringData, fields) => {
    expect((await refused('secrets', { type, stringData })).map(([field]) => field)).toEqual(fields);
  });

  it('shows no contents in a refusal', async () => {
    const stringData = { '.dockercfg': 'hunter2' };
    expect(await refused('secrets', { type: 'kubernetes.io/dockercfg', stringData })).toEqual([
      ['data[.dockercfg]', 'Invalid value: "<secret contents redacted>": must be a JSON object'],
    ]);
  });

  it('keeps its type, and can be selected by it', async () => {
    const api = apiInMemory();
    const all = collectionOf('secrets');
    await api.send('POST', all, { body: objectOf('secrets') });
    expect(await api.send('PATCH', `${all}/a`, { body: { type: 'foo' }, contentType: MERGE })).toMatchObject({
      code: 422,
      body: { details: { causes: [{ message: 'Invalid value: "foo": field is immutable', field: 'type' }] } },
    });
    const listed = async (type: string) => (await api.send('GET', `${all}?fieldSelector=type%3D${type}`)).body.items;
    expect(await listed('Opaque')).toHaveLength(1);
    expect(await listed('foo')).toHaveLength(0);
  });

  it('shows the number of its keys in a table, and no data', async () => {
    const api = apiInMemory();
    await api.send('POST', collectionOf('secrets'), { body: objectOf('secrets') });
    const { text, body } = await api.send('GET', collectionOf('secrets'), { accept: TABLE });
    expect(body.rows[0].cells.slice(0, 3)).toEqual(['a', 'Opaque', 1]);
    expect(text).not.toContain('dmFsdWU');
  });
});

describe('a workload', () => {
  it('has the defaults of upstream', async () => {
    expect((await created('deployments')).spec).toMatchObject({
      replicas: 1,
      revisionHistoryLimit: 10,
      progressDeadlineSeconds: 600,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } },
      template: {
        metadata: { labels: { app: 'a' }, creationTimestamp: null },
        spec: { restartPolicy: 'Always', terminationGracePeriodSeconds: 30, schedulerName: 'default-scheduler' },
      },
    });
    expect(await created('replicationcontrollers')).toMatchObject({
      spec: { replicas: 1, selector: { app: 'a' } },
      status: { replicas: 0 },
      metadata: { generation: 1 },
    });
    expect((await created('statefulsets')).spec).toMatchObject({
      podManagementPolicy: 'OrderedReady',
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
    });
    expect((await created('cronjobs')).spec).toMatchObject({
      concurrencyPolicy: 'Allow',
      suspend: false,
      successfulJobsHistoryLimit: 3,
      failedJobsHistoryLimit: 1,
    });
  });

  it('keeps requests and service links out of its template, and sets them in its pods', async () => {
    const api = apiInMemory();
    const containers = [{ name: 'c', image: 'i', resources: { limits: { cpu: '1' } } }];
    const template = { metadata: { labels: { app: 'a' } }, spec: { containers } };
    for (const resource of ['deployments', 'replicasets', 'statefulsets', 'daemonsets']) {
      const spec = { serviceName: 'a', selector: { matchLabels: { app: 'a' } }, template };
      const body = { metadata: { name: 'a' }, spec };
      const stored = await api.send('POST', `/apis/apps/v1/namespaces/default/${resource}`, { body });
      expect(stored.body.spec.template.spec.containers[0].resources).toEqual({ limits: { cpu: '1' } });
      expect(stored.body.spec.template.spec).not.toHaveProperty('enableServiceLinks');
    }
    const pod = { metadata: { name: 'a' }, spec: template.spec };
    const { body } = await api.send('POST', '/api/v1/namespaces/default/pods', { body: pod });
    expect(body.spec.containers[0].resources).toEqual({ limits: { cpu: '1' }, requests: { cpu: '1' } });
    expect(body.spec.enableServiceLinks).toBe(true);
  });

  it('of kind ReplicationController without labels has those of its template', async () => {
    expect((await created('replicationcontrollers')).metadata.labels).toEqual({ app: 'a' });
  });

  it('of kind Deployment has a new generation when its annotations change, but not by a status', async () => {
    const api = apiInMemory();
    const path = `${collectionOf('deployments')}/a`;
    await api.send('POST', collectionOf('deployments'), { body: objectOf('deployments') });
    const annotate = async (to: string, annotations: object): Promise<number> => {
      const body = { metadata: { annotations } };
      return (await api.send('PATCH', to, { body, contentType: MERGE })).body.metadata.generation;
    };
    expect(await annotate(path, { a: '1' })).toBe(2);
    expect(await annotate(path, { a: '1' })).toBe(2);
    expect(await annotate(`${path}/status`, { a: '2' })).toBe(2);
    await api.send('POST', collectionOf('replicasets'), { body: objectOf('replicasets') });
    expect(await annotate(`${collectionOf('replicasets')}/a`, { a: '1' })).toBe(1);
  });

  it('of kind DaemonSet counts its templates in an annotation', async () => {
    const api = apiInMemory();
    const path = '/apis/apps/v1/namespaces/default/daemonsets';
    const spec = {
      selector: { matchLabels: { app: 'a' } },
      template: { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    };
    const created = await api.send('POST', path, { body: { metadata: { name: 'a' }, spec } });
    const numberOf = ({ body }: typeof created): string =>
      body.metadata.annotations['deprecated.daemonset.template.generation'];
    expect(numberOf(created)).toBe('1');
    const patch = (body: object) => api.send('PATCH', `${path}/a`, { body, contentType: MERGE });
    expect(numberOf(await patch({ spec: { minReadySeconds: 3 } }))).toBe('1');
    expect(numberOf(await patch({ metadata: { annotations: null } }))).toBe('1');
    expect(numberOf(await patch({ spec: { template: { metadata: { labels: { b: 'c' } } } } }))).toBe('2');
  });

  it('of kind Job selects its pods by its own uid', async () => {
    const job = await created('jobs');
    const uid = job.metadata.uid;
    expect(job.spec).toMatchObject({
      backoffLimit: 6,
      completions: 1,
      parallelism: 1,
      completionMode: 'NonIndexed',
      selector: { matchLabels: { 'batch.kubernetes.io/controller-uid': uid } },
      template: { metadata: { labels: { 'batch.kubernetes.io/controller-uid': uid, 'job-name': 'a' } } },
    });
    expect(job.metadata.labels, 'a Job without labels has those of its template').toEqual(
      job.spec.template.metadata.labels,
    );
  });

  const template = (labels: object, spec: object = {}) => ({
    metadata: { labels },
    spec: { containers: [{ name: 'c', image: 'i' }], ...spec },
  });
  const selector = { matchLabels: { app: 'a' } };

  it.each([
    ['deployments', { selector, template: template({ app: 'b' }) }, 'spec.template.metadata.labels'],
    ['deployments', { selector: {}, template: template({}) }, 'spec.selector'],
    ['deployments', { selector, template: template({ app: 'a' }), replicas: -1 }, 'spec.replicas'],
    [
      'deployments',
      { selector, template: template({ app: 'a' }, { restartPolicy: 'Never' }) },
      'spec.template.spec.restartPolicy',
    ],
    [
      'deployments',
      { selector, template: { metadata: { labels: { app: 'a' } }, spec: {} } },
      'spec.template.spec.containers',
    ],
    [
      'deployments',
      { selector, template: template({ app: 'a' }), strategy: { type: 'Recreate', rollingUpdate: {} } },
      'spec.strategy.rollingUpdate',
    ],
    [
      'deployments',
      { selector, template: template({ app: 'a' }), minReadySeconds: 9, progressDeadlineSeconds: 9 },
      'spec.progressDeadlineSeconds',
    ],
    ['replicasets', { selector, template: template({}) }, 'spec.template.metadata.labels'],
    ['replicationcontrollers', { selector: { app: 'b' }, template: template({}) }, 'spec.template.metadata.labels'],
    [
      'statefulsets',
      { selector, template: template({ app: 'a' }), podManagementPolicy: 'Random' },
      'spec.podManagementPolicy',
    ],
    ['jobs', { template: template({}) }, 'spec.template.spec.restartPolicy'],
    ['jobs', { template: template({}, { restartPolicy: 'Never' }), parallelism: -1 }, 'spec.parallelism'],
    [
      'jobs',
      { template: template({}, { restartPolicy: 'Never' }), backoffLimitPerIndex: 1 },
      'spec.backoffLimitPerIndex',
    ],
    [
      'jobs',
      {
        template: template({}, { restartPolicy: 'OnFailure' }),
        podFailurePolicy: { rules: [{ action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget' }] }] },
      },
      'spec.template.spec.restartPolicy',
    ],
    [
      'jobs',
      {
        template: template({}, { restartPolicy: 'Never' }),
        podFailurePolicy: { rules: [{ action: 'FailJob', onExitCodes: { operator: 'In', values: [0] } }] },
      },
      'spec.podFailurePolicy.rules[0].onExitCodes.values[0]',
    ],
    [
      'cronjobs',
      { schedule: '* *', jobTemplate: { spec: { template: template({}, { restartPolicy: 'Never' }) } } },
      'spec.schedule',
    ],
  ])('of kind %s is refused with the field of the cause', async (resource, spec, field) => {
    expect((await refused(resource, { spec })).map(([each]) => each)).toEqual([field]);
  });

  it('may be a Job with limits for each index and a success policy', async () => {
    const rule = { action: 'FailIndex', onExitCodes: { operator: 'In', values: [7] } };
    const limits = { completionMode: 'Indexed', completions: 3, backoffLimitPerIndex: 1, maxFailedIndexes: 3 };
    const policies = {
      podFailurePolicy: { rules: [rule] },
      successPolicy: { rules: [{ succeededIndexes: '0-2', succeededCount: 3 }, { succeededCount: 0 }] },
    };
    const spec = { template: template({}, { restartPolicy: 'Never' }), ...limits, ...policies };
    const answer = await apiInMemory().send('POST', collectionOf('jobs'), { body: { ...objectOf('jobs'), spec } });
    expect([answer.code, answer.body.spec]).toEqual([201, expect.objectContaining({ ...limits, ...policies })]);
    expect(answer.body.spec).toMatchObject({ backoffLimit: 2_147_483_647, podReplacementPolicy: 'Failed' });
  });

  it('keeps its selector', async () => {
    const api = apiInMemory();
    const path = `${collectionOf('replicasets')}/a`;
    await api.send('POST', collectionOf('replicasets'), { body: objectOf('replicasets') });
    const labels = { app: 'b' };
    expect(
      await api.send('PATCH', path, {
        body: { spec: { selector: { matchLabels: labels }, template: { metadata: { labels } } } },
        contentType: MERGE,
      }),
    ).toMatchObject({ code: 422, body: { details: { causes: [{ field: 'spec.selector' }] } } });
  });

  it('counts generations of its spec, and keeps spec and status apart', async () => {
    const api = apiInMemory();
    const path = `${collectionOf('deployments')}/a`;
    await api.send('POST', collectionOf('deployments'), {
      body: { ...objectOf('deployments'), status: { replicas: 9 } },
    });
    const patch = (to: string, body: object) => api.send('PATCH', `${path}${to}`, { body, contentType: MERGE });
    expect((await patch('', { spec: { replicas: 2 } })).body).toMatchObject({
      metadata: { generation: 2 },
      status: {},
    });
    const status = await patch('/status', { spec: { replicas: 7 }, status: { readyReplicas: 1, replicas: 2 } });
    expect(status.body).toMatchObject({
      metadata: { generation: 2 },
      spec: { replicas: 2 },
      status: { readyReplicas: 1, replicas: 2 },
    });
    const table = await api.send('GET', path, { accept: TABLE });
    expect(table.body.rows[0].cells.slice(0, 4)).toEqual(['a', '1/2', 0, 0]);
  });
});

describe('the scale of a workload', () => {
  it.each(['deployments', 'replicasets', 'replicationcontrollers', 'statefulsets'])(
    'of %s is read and changed',
    async (resource) => {
      const api = apiInMemory();
      const path = `${collectionOf(resource)}/a`;
      await api.send('POST', collectionOf(resource), { body: objectOf(resource) });
      const { body: scale } = await api.send('GET', `${path}/scale`);
      expect(scale).toMatchObject({
        kind: 'Scale',
        apiVersion: 'autoscaling/v1',
        metadata: { name: 'a', namespace: 'default' },
        spec: { replicas: 1 },
        status: { replicas: 0, selector: 'app=a' },
      });
      const put = await api.send('PUT', `${path}/scale`, { body: { ...scale, spec: { replicas: 3 } } });
      expect(put, put.text).toMatchObject({ code: 200, body: { kind: 'Scale', spec: { replicas: 3 } } });
      const bytes = protobufBody({ ...put.body, spec: { replicas: 5 } });
      const protobuf = await api.send('PUT', `${path}/scale`, { body: bytes, contentType: PROTOBUF });
      expect(protobuf.body.spec).toEqual({ replicas: 5 });
      const patched = await api.send('PATCH', `${path}/scale`, { body: { spec: { replicas: 0 } }, contentType: MERGE });
      expect(patched.body.spec).toEqual({});
      expect((await api.send('GET', path)).body).toMatchObject({ spec: { replicas: 0 }, metadata: { generation: 4 } });
    },
  );

  it('is a table of its own for kubectl get --subresource=scale', async () => {
    const api = apiInMemory();
    const path = `${collectionOf('deployments')}/a`;
    await api.send('POST', collectionOf('deployments'), { body: objectOf('deployments') });
    const { body } = await api.send('GET', `${path}/scale`, { accept: TABLE });
    const names = body.columnDefinitions.map(({ name }: { name: string }) => name);
    expect(names).toEqual(['Name', 'Desired', 'Available', 'Age']);
    expect(body.rows).toMatchObject([{ cells: ['a', 1, 0, '0s'], object: { kind: 'PartialObjectMetadata' } }]);
    const change = { body: { spec: { replicas: 3 } }, contentType: MERGE, accept: TABLE };
    expect((await api.send('PATCH', `${path}/scale`, change)).body.rows).toMatchObject([{ cells: ['a', 3, 0, '0s'] }]);
  });

  it('is applied: its manager owns the replicas, and others meet a conflict', async () => {
    const api = apiInMemory();
    const path = `${collectionOf('deployments')}/a`;
    await api.send('POST', `${collectionOf('deployments')}?fieldManager=author`, { body: objectOf('deployments') });
    const apply = (manager: string, body: object, more = '') =>
      api.send('PATCH', `${path}/scale?fieldManager=${manager}${more}`, { body, contentType: APPLY });
    const two = { apiVersion: 'autoscaling/v1', kind: 'Scale', spec: { replicas: 2 } };
    const first = await apply('one', two, '&force=true');
    expect(first, first.text).toMatchObject({ code: 200, body: { kind: 'Scale', spec: { replicas: 2 } } });
    const { body: deployment } = await api.send('GET', path);
    expect(deployment).toMatchObject({ kind: 'Deployment', spec: { replicas: 2, selector: expect.anything() } });
    expect(deployment.metadata.managedFields).toContainEqual(
      expect.objectContaining({
        manager: 'one',
        operation: 'Apply',
        subresource: 'scale',
        fieldsV1: { 'f:spec': { 'f:replicas': {} } },
      }),
    );
    const other = await apply('two', { ...two, spec: { replicas: 0 } });
    expect(other).toMatchObject({ code: 409, body: { details: { causes: [{ field: '.spec.replicas' }] } } });
    expect((await apply('two', { ...two, spec: { replicas: 0 } }, '&force=true')).body.spec).toEqual({});
    for (const validation of ['Strict', 'Warn', 'Ignore']) {
      const unknown = await apply('two', { ...two, spec: { copies: 1 } }, `&fieldValidation=${validation}`);
      expect(unknown.code, validation).toBe(400);
    }
    expect((await apply('two', { ...two, metadata: { resourceVersion: '1' } })).code).toBe(409);
    expect((await apply('two', { ...two, metadata: { name: 'b' } })).code).toBe(400);
    expect((await apply('two', [])).code).toBe(400);
    // What the last manager gives up has its default.
    expect((await apply('two', { ...two, spec: { replicas: null } })).body.spec).toEqual({ replicas: 1 });
  });

  it('refuses an old version, another name and a negative number', async () => {
    const api = apiInMemory();
    const path = `${collectionOf('deployments')}/a`;
    await api.send('POST', collectionOf('deployments'), { body: objectOf('deployments') });
    const { body: scale } = await api.send('GET', `${path}/scale`);
    await api.send('PATCH', path, { body: { spec: { paused: true } }, contentType: MERGE });
    expect((await api.send('PUT', `${path}/scale`, { body: scale })).code).toBe(409);
    expect((await api.send('PUT', `${path}/scale`, { body: { metadata: { name: 'b' } } })).code).toBe(400);
    expect((await api.send('PUT', `${path}/scale`, { body: { kind: 'Pod' } })).code).toBe(400);
    expect((await api.send('PATCH', `${path}/scale`, { body: {}, contentType: APPLY })).code).toBe(422);
    const applied = { body: { spec: { replicas: -1 } }, contentType: APPLY };
    expect((await api.send('PATCH', `${path}/scale?fieldManager=me`, applied)).code).toBe(422);
    const negative = [{ op: 'replace', path: '/spec/replicas', value: -1 }];
    expect(await api.send('PATCH', `${path}/scale`, { body: negative, contentType: JSON_PATCH })).toMatchObject({
      code: 422,
      body: { details: { kind: 'Scale', group: 'autoscaling', causes: [{ field: 'spec.replicas' }] } },
    });
    expect((await api.send('GET', `${collectionOf('deployments')}/b/scale`)).code).toBe(404);
  });
});

describe('a Service', () => {
  it('is assigned an address that no other Service has, and releases it', async () => {
    const api = apiInMemory();
    const all = collectionOf('services');
    const created = [];
    for (let index = 0; index < 20; index += 1) {
      created.push((await api.send('POST', all, { body: objectOf('services', `s${index}`) })).body);
    }
    const addresses = created.map(({ spec }) => spec.clusterIP);
    expect(new Set(addresses).size).toBe(20);
    expect(created[0].spec).toMatchObject({
      type: 'ClusterIP',
      clusterIP: expect.stringMatching(/^10\.96\.\d+\.\d+$/),
      clusterIPs: [addresses[0]],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      sessionAffinity: 'None',
      internalTrafficPolicy: 'Cluster',
      ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
    });
    const wanted = { ...objectOf('services', 'wanted'), spec: { ports: [{ port: 1 }], clusterIP: addresses[0] } };
    expect(await api.send('POST', all, { body: wanted })).toMatchObject({
      code: 422,
      body: { message: expect.stringContaining('provided IP is already allocated') },
    });
    await api.send('DELETE', `${all}/s0`);
    expect(await api.send('POST', all, { body: wanted })).toMatchObject({ code: 201 });
    expect(api.faults).toEqual([]);
  });

  it('keeps its address through updates that do not name it', async () => {
    const api = apiInMemory();
    const all = collectionOf('services');
    const { body } = await api.send('POST', all, { body: objectOf('services') });
    const put = await api.send('PUT', `${all}/a`, {
      body: { ...objectOf('services'), spec: { ports: [{ port: 81 }] } },
    });
    expect(put.body.spec).toMatchObject({ clusterIP: body.spec.clusterIP, ports: [{ port: 81 }] });
    const other = { spec: { clusterIP: '10.96.1.2', clusterIPs: ['10.96.1.2'] } };
    expect(await api.send('PATCH', `${all}/a`, { body: other, contentType: MERGE })).toMatchObject({ code: 422 });
  });

  it('without an address is headless or an alias', async () => {
    const spec = (more: object) => ({ spec: { ports: [{ port: 80 }], ...more } });
    expect((await created('services', spec({ clusterIP: 'None' }))).spec).toMatchObject({ clusterIP: 'None' });
    const alias = await created('services', { spec: { type: 'ExternalName', externalName: 'example.com' } });
    expect(alias.spec.clusterIP).toBeUndefined();
    expect(await refused('services', { spec: {} })).toEqual([['spec.ports', 'Required value']]);
    expect(await refused('services', spec({ clusterIP: '192.0.2.1' }))).toEqual([
      ['spec.clusterIPs', expect.stringContaining('is not in the valid range. The range of valid IPs is 10.96.0.0/16')],
    ]);
  });

  it('of the API exists in every cluster, and exists again after its deletion', async () => {
    const api = apiInMemory();
    const path = `${collectionOf('services')}/kubernetes`;
    expect((await api.send('GET', '/api/v1/services')).body.items).toMatchObject([
      { metadata: { name: 'kubernetes' } },
    ]);
    expect((await api.send('GET', path)).body.spec).toMatchObject({
      clusterIP: '10.96.0.1',
      ports: [{ name: 'https', port: 443 }],
    });
    await api.send('DELETE', path);
    expect((await api.send('GET', path)).code).toBe(200);
  });
});

describe('a kind that nothing acts on', () => {
  const hpa = { spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }, maxReplicas: 3 } };
  it.each([
    [
      'services',
      '/api/v1/namespaces/default/services',
      { spec: { ports: [{ port: 80 }] } },
      'the address of the Service is routed only on nodes',
    ],
    ['autoscalers', '/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers', hpa, 'nothing scales by it'],
    ['autoscalers', '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers', hpa, 'nothing scales by it'],
  ])('warns at the creation of %s at %s, and not later', async (_kind, path, object, text) => {
    const api = apiInMemory();
    const created = await api.send('POST', path, { body: { metadata: { name: 'a' }, ...object } });
    expect(created.headers['warning'] ?? created.headers['Warning'], created.text).toContain(text);
    const body = { metadata: { labels: { b: 'c' } } };
    const changed = await api.send('PATCH', `${path}/a`, { body, contentType: MERGE });
    expect(changed.code).toBe(200);
    expect(Object.keys(changed.headers).map((name) => name.toLowerCase())).not.toContain('warning');
  });
});

describe('kinds with two versions', () => {
  const V1 = '/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers';
  const V2 = '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers';
  const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' };

  it('convert the CPU target of an autoscaler, and keep what v1 has no field for', async () => {
    const api = apiInMemory();
    await api.send('POST', V1, {
      body: { metadata: { name: 'a' }, spec: { scaleTargetRef, maxReplicas: 3, targetCPUUtilizationPercentage: 50 } },
    });
    const target = { type: 'Utilization', averageUtilization: 50 };
    const metrics = [{ type: 'Resource', resource: { name: 'cpu', target } }];
    expect((await api.send('GET', `${V2}/a`)).body).toMatchObject({ apiVersion: 'autoscaling/v2', spec: { metrics } });
    const memory = { type: 'Resource', resource: { name: 'memory', target } };
    await api.send('PATCH', `${V2}/a`, { body: { spec: { metrics: [...metrics, memory] } }, contentType: MERGE });
    const patched = await api.send('PATCH', `${V1}/a`, {
      body: { spec: { targetCPUUtilizationPercentage: 60 } },
      contentType: MERGE,
    });
    expect(patched.body).toMatchObject({ apiVersion: 'autoscaling/v1', spec: { targetCPUUtilizationPercentage: 60 } });
    const stored = (await api.send('GET', `${V2}/a`)).body;
    expect(stored.metadata.annotations).toBeUndefined();
    expect(stored.spec.metrics).toEqual([
      memory,
      { type: 'Resource', resource: { name: 'cpu', target: { ...target, averageUtilization: 60 } } },
    ]);
  });

  it('convert an empty selector of a budget to its meaning in each version', async () => {
    const api = apiInMemory();
    const path = (version: string) => `/apis/policy/${version}/namespaces/default/poddisruptionbudgets`;
    const body = { metadata: { name: 'b' }, spec: { minAvailable: 1, selector: {} } };
    expect((await api.send('POST', path('v1beta1'), { body })).body.spec.selector).toEqual({});
    const [requirement] = (await api.send('GET', `${path('v1')}/b`)).body.spec.selector.matchExpressions;
    expect(requirement.operator).toBe('Exists');
    await api.send('POST', path('v1'), { body: { ...body, metadata: { name: 'all' } } });
    const all = (await api.send('GET', `${path('v1beta1')}/all`)).body;
    expect(all.apiVersion).toBe('policy/v1beta1');
    expect(all.spec.selector.matchExpressions[0].operator).toBe('DoesNotExist');
    expect((await api.send('PUT', `${path('v1beta1')}/all`, { body: all })).code).toBe(200);
    expect((await api.send('GET', `${path('v1')}/all`)).body.spec.selector).toEqual({});
  });
});

describe('a CertificateSigningRequest', () => {
  const all = '/apis/certificates.k8s.io/v1/certificatesigningrequests';

  it('names its author, and its spec never changes', async () => {
    const api = apiInMemory();
    const object = objectOf('certificatesigningrequests');
    const body = { ...object, spec: { ...(object['spec'] as object), username: 'root', groups: ['system:masters'] } };
    expect((await api.send('POST', all, { body })).body.spec).toMatchObject({ username: 'tester' });
    const patched = await api.send('PATCH', `${all}/a`, { body: { spec: { username: 'root' } }, contentType: MERGE });
    expect(patched.body.spec.username).toBe('tester');
  });

  it('is answered with a warning where nothing signs it', async () => {
    const { code, headers } = await apiInMemory().send('POST', all, { body: objectOf('certificatesigningrequests') });
    expect([code, headers?.['warning']]).toEqual([
      201,
      '299 - "nothing signs certificates here: nodekeeper join-command prints how a machine joins"',
    ]);
  });

  it('is approved through its subresource, once and for all', async () => {
    const api = apiInMemory();
    const { body } = await api.send('POST', all, { body: objectOf('certificatesigningrequests') });
    const approve = (type: string, to = 'approval') => {
      const conditions = [{ type, status: 'True', reason: 'KubectlApprove' }];
      return api.send('PUT', `${all}/a/${to}`, { body: { ...body, metadata: { name: 'a' }, status: { conditions } } });
    };
    expect((await approve('Approved', 'status')).code).toBe(422);
    expect((await approve('Approved')).body.status.conditions).toMatchObject([
      { type: 'Approved', lastUpdateTime: expect.any(String), lastTransitionTime: expect.any(String) },
    ]);
    expect((await approve('Denied')).code).toBe(422);
    const table = await api.send('GET', `${all}/a`, { accept: TABLE });
    expect(table.body.rows[0].cells.at(-1)).toBe('Approved');
  });
});

describe('roles', () => {
  it('bind a role that cannot be replaced', async () => {
    const api = apiInMemory();
    const path = `${collectionOf('rolebindings')}/a`;
    const { body } = await api.send('POST', collectionOf('rolebindings'), { body: objectOf('rolebindings') });
    expect(body).toMatchObject({
      roleRef: { apiGroup: 'rbac.authorization.k8s.io' },
      subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io' }],
    });
    expect(await api.send('PATCH', path, { body: { roleRef: { name: 'other' } }, contentType: MERGE })).toMatchObject({
      code: 422,
      body: { details: { causes: [{ field: 'roleRef', message: expect.stringContaining('cannot change roleRef') }] } },
    });
  });

  it('have rules for resources or for paths', async () => {
    expect(await refused('roles', { rules: [{ verbs: ['get'], nonResourceURLs: ['/x'] }] })).toHaveLength(1);
    expect((await refused('clusterroles', { rules: [{}] })).map(([field]) => field)).toEqual([
      'rules[0].verbs',
      'rules[0].apiGroups',
      'rules[0].resources',
    ]);
  });
});

describe('other kinds', () => {
  it.each([
    ['ingresses', { spec: {} }, ['spec']],
    ['networkpolicies', { spec: { podSelector: {}, policyTypes: ['Both'] } }, ['spec.policyTypes[0]']],
    ['persistentvolumeclaims', { spec: {} }, ['spec.accessModes', 'spec.resources[storage]']],
    ['persistentvolumes', { spec: {} }, ['spec.accessModes', 'spec.capacity', 'spec.capacity', 'spec']],
    ['resourcequotas', { spec: { hard: { pods: '-1' } } }, ['spec.hard[pods]']],
    ['limitranges', { spec: { limits: [{ type: 'Node' }] } }, ['spec.limits[0].type']],
    ['storageclasses', { provisioner: '' }, ['provisioner']],
    ['runtimeclasses', { handler: 'A' }, ['handler']],
    ['endpointslices', { addressType: 'IPv6' }, ['endpoints[0].addresses[0]']],
    ['endpoints', { subsets: [{}] }, ['subsets[0]']],
    ['horizontalpodautoscalers', { spec: { maxReplicas: 0 } }, expect.arrayContaining(['spec.maxReplicas'])],
    ['controllerrevisions', { data: null }, ['data']],
    ['ingressclasses', { spec: { controller: 'x' } }, ['spec.controller']],
    ['csistoragecapacities', { storageClassName: 'A' }, ['storageClassName']],
    ['podtemplates', { template: {} }, ['template.spec.containers']],
  ])('%s are refused with the fields of the causes', async (resource, more, fields) => {
    expect((await refused(resource, more)).map(([field]) => field)).toEqual(fields);
  });

  it('have defaults: limits of a LimitRange, directions of a policy, phases of volumes', async () => {
    expect((await created('limitranges')).spec.limits).toEqual([
      { type: 'Container', max: { cpu: '1' }, default: { cpu: '1' }, defaultRequest: { cpu: '1' } },
    ]);
    expect((await created('networkpolicies')).spec.policyTypes).toEqual(['Ingress']);
    expect(await created('persistentvolumeclaims')).toMatchObject({
      spec: { volumeMode: 'Filesystem' },
      status: { phase: 'Pending' },
    });
    expect(await created('csidrivers')).toMatchObject({
      spec: { attachRequired: true, volumeLifecycleModes: ['Persistent'], fsGroupPolicy: 'ReadWriteOnceWithFSType' },
    });
  });

  it.each(['services', 'serviceaccounts', 'persistentvolumes', 'podtemplates'])(
    'of %s answer a DELETE with the object, as upstream',
    async (resource) => {
      const api = apiInMemory();
      const { body } = await api.send('POST', collectionOf(resource), { body: objectOf(resource) });
      expect((await api.send('DELETE', `${collectionOf(resource)}/a`)).body.kind).toBe(body.kind);
    },
  );
});
