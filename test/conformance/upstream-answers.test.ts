/** Texts of upstream that programs and people look for, in the words of Kubernetes 1.32 and later. */
import { expect, it } from 'vitest';
import { apiInMemory, MERGE, NODES, node, pod, podsIn } from '../support/api-in-memory.ts';

const PODS = podsIn('default');
const BUDGETS = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
const ATTACHMENTS = '/apis/storage.k8s.io/v1/volumeattachments';

it.each([
  ['a in (b', "unable to parse requirement: found '', expected: ',' or ')'"],
  ['a in (b c)', "unable to parse requirement: found 'c', expected: ',' or ')'"],
  ['a in (b,', "unable to parse requirement: found '', expected: ',', or identifier"],
  ['a in (,', "unable to parse requirement: found '', expected: ',', or identifier"],
  ['a in (', "unable to parse requirement: found '', expected: ',', ')' or identifier"],
  ['a in b', "unable to parse requirement: found 'b' expected: '('"],
  ['((', "found '(', expected: !, identifier, or 'end of string'"],
  ['a=b=c', "found '=', expected: ',' or 'end of string'"],
  ['a=b,', "found '', expected: identifier after ','"],
])('the label selector %s is refused', async (selector, message) => {
  const api = apiInMemory();
  const answer = await api.send('GET', `${NODES}?labelSelector=${encodeURIComponent(selector)}`);
  expect(answer).toMatchObject({ code: 400, body: { message } });
});

it('a deletion that answers a Status answers it without a code, a creation with one', async () => {
  const api = apiInMemory();
  await api.send('POST', NODES, { body: node('n1') });
  const deleted = await api.send('DELETE', `${NODES}/n1`);
  expect(deleted.body).toMatchObject({ kind: 'Status', status: 'Success', details: { name: 'n1', kind: 'nodes' } });
  expect(deleted.body).not.toHaveProperty('code');
  await api.send('POST', PODS, { body: pod('p') });
  const bound = await api.send('POST', `${PODS}/p/binding`, { body: { target: { kind: 'Node', name: 'n1' } } });
  expect(bound.body).toMatchObject({ kind: 'Status', code: 201 });
});

it('a second binding conflicts under the name of the subresource', async () => {
  const api = apiInMemory();
  await api.send('POST', PODS, { body: pod('p', { spec: { nodeName: 'n0' } }) });
  expect(await api.send('POST', `${PODS}/p/binding`, { body: { target: { kind: 'Node', name: 'n1' } } })).toMatchObject(
    {
      code: 409,
      body: {
        message: 'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n0"',
        details: { name: 'p', kind: 'pods/binding' },
      },
    },
  );
});

it('an eviction of a pod that is not there is 404, to its own machine too', async () => {
  const api = apiInMemory({ users: { machine: { name: 'system:node:n1', groups: ['system:nodes'] } } });
  const headers = { authorization: 'Bearer machine' };
  for (const metadata of [{ name: 'p' }, {}]) {
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata };
    const answer = await api.send('POST', `${PODS}/p/eviction`, { headers, body });
    expect(answer).toMatchObject({ code: 404, body: { message: 'pods "p" not found' } });
  }
});

it('a share that is none is refused with the form of one', async () => {
  const api = apiInMemory();
  for (const field of ['minAvailable', 'maxUnavailable']) {
    const answer = await api.send('POST', BUDGETS, { body: { metadata: { name: 'b' }, spec: { [field]: '50' } } });
    expect(answer).toMatchObject({ code: 422 });
    expect(answer.body.details.causes).toEqual([
      {
        reason: 'FieldValueInvalid',
        field: `spec.${field}`,
        message:
          "Invalid value: \"50\": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
      },
    ]);
  }
});

const ONE_SOURCE = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName';
it.each<[string, object, readonly (readonly [string, string])[]]>([
  [
    'without a source',
    { attacher: 'd', nodeName: 'n', source: {} },
    [['spec.source', `Required value: ${ONE_SOURCE}`]],
  ],
  [
    'with both sources',
    { attacher: 'd', nodeName: 'n', source: { persistentVolumeName: 'v', inlineVolumeSpec: {} } },
    [['spec.source', `Forbidden: ${ONE_SOURCE}`]],
  ],
  [
    'with an empty volume',
    { attacher: 'd', nodeName: 'n', source: { persistentVolumeName: '' } },
    [
      ['spec.source.persistentVolumeName', 'Required value: must specify non empty persistentVolumeName'],
      ['spec.source.persistentVolumeName', 'Invalid value: "": a lowercase RFC 1123 subdomain must consist of'],
    ],
  ],
  [
    'with an empty attacher',
    { attacher: '', nodeName: 'n', source: { persistentVolumeName: 'v' } },
    [
      ['spec.attacher', 'Required value'],
      ['spec.attacher', 'Invalid value: "": a lowercase RFC 1123 subdomain must consist of'],
    ],
  ],
])('a volume attachment %s is refused', async (_, spec, causes) => {
  const api = apiInMemory();
  const answer = await api.send('POST', ATTACHMENTS, { body: { metadata: { name: 'a' }, spec } });
  expect(answer.code).toBe(422);
  const found = answer.body.details.causes as { field: string; message: string }[];
  expect(found.map(({ field, message }, index) => [field, message.slice(0, causes[index]?.[1].length)])).toEqual(
    causes,
  );
});

it('pods are selected by hostNetwork, as since 1.28', async () => {
  const api = apiInMemory();
  await api.send('POST', PODS, { body: pod('host', { spec: { hostNetwork: true } }) });
  await api.send('POST', PODS, { body: pod('own') });
  const names = async (value: string) =>
    (await api.send('GET', `${PODS}?fieldSelector=spec.hostNetwork%3D${value}`)).body.items.map(
      (each: { metadata: { name: string } }) => each.metadata.name,
    );
  expect(await names('true')).toEqual(['host']);
  expect(await names('false')).toEqual(['own']);
});

it('NR-41 a mirror pod of a Node that does not exist is 404, so its machine registers and tries again', async () => {
  const api = apiInMemory({ users: { machine: { name: 'system:node:n1', groups: ['system:nodes'] } } });
  const headers = { authorization: 'Bearer machine' };
  const owner = { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'u', controller: true };
  const mirror = pod('p', {
    metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' }, ownerReferences: [owner] },
    spec: { nodeName: 'n1' },
  });
  const send = () => api.send('POST', PODS, { headers, body: mirror });
  expect(await send()).toMatchObject({ code: 404, body: { reason: 'NotFound', message: 'nodes "n1" not found' } });
  await api.send('POST', NODES, { body: node('n1') });
  expect(await send(), 'the uid of the owner is another').toMatchObject({ code: 403 });
});

it('an event of the newer form is changed through v1, and through events.k8s.io its series only', async () => {
  const api = apiInMemory();
  const events = (group: string) => `/apis/${group}/namespaces/default/events`;
  const event = {
    metadata: { name: 'e' },
    eventTime: '2026-01-01T00:00:00.000000Z',
    reportingController: 'example.com/c',
    reportingInstance: 'c-1',
    action: 'Start',
    reason: 'Started',
    regarding: { kind: 'Pod', namespace: 'default', name: 'p' },
    type: 'Normal',
  };
  expect(await api.send('POST', events('events.k8s.io/v1'), { body: event })).toMatchObject({ code: 201 });
  const patch = (path: string, body: object) => api.send('PATCH', `${path}/e`, { body, contentType: MERGE });
  const changed = { reason: 'Other', message: 'changed', count: 2 };
  expect(await patch('/api/v1/namespaces/default/events', changed)).toMatchObject({ code: 200, body: changed });
  const series = { count: 2, lastObservedTime: '2026-01-01T00:01:00.000000Z' };
  expect(await patch(events('events.k8s.io/v1'), { series })).toMatchObject({ code: 200, body: { series } });
  const refused = await patch(events('events.k8s.io/v1'), { note: 'again' });
  expect(refused.body.details.causes).toMatchObject([{ field: 'message', reason: 'FieldValueInvalid' }]);
});
