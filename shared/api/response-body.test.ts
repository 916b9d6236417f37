import { describe, expect, it } from 'vitest';
import { leases } from '../kinds/leases/serve.ts';
import { events, eventsV1 } from '../kinds/registry.ts';
import { answerForm, buildTable, parseIncludeObject, partialMetadataList, permittedResponse } from './response-body.ts';

const nowMs = Date.UTC(2001, 1, 3, 4, 5, 11);
const lease = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: {
    name: 'kw-1',
    namespace: 'kube-node-lease',
    resourceVersion: '7',
    creationTimestamp: '2001-02-03T04:05:06Z',
    managedFields: [{}],
  },
  spec: { holderIdentity: 'kw-1' },
};

describe('tables', () => {
  it('carry cells and the metadata of each object', () => {
    const table = buildTable(leases, [lease], { nowMs, metadata: { resourceVersion: '9', continue: 'x' } });
    expect(table).toMatchObject({
      kind: 'Table',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { resourceVersion: '9', continue: 'x' },
    });
    expect(table.columnDefinitions?.[0]).toMatchObject({ name: 'Name', format: 'name', type: 'string', priority: 0 });
    const { managedFields: _managedFields, ...metadata } = lease.metadata;
    expect(table.rows).toEqual([
      {
        cells: ['kw-1', 'kw-1', '5s'],
        object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata },
      },
    ]);
  });

  it('carry the whole object or none when asked to', () => {
    expect(buildTable(leases, [lease], { nowMs, includeObject: 'Object' }).rows[0]?.object).toEqual(lease);
    expect(buildTable(leases, [lease], { nowMs, includeObject: 'None' }).rows[0]).not.toHaveProperty('object');
  });

  it('define no columns in later events of a watch, and have the version of a single object', () => {
    const table = buildTable(leases, [lease], { nowMs, withoutColumns: true });
    expect(table.columnDefinitions).toBeNull();
    expect(table.metadata).toEqual({ resourceVersion: '7' });
  });

  it('show events of the newer form by their newer names', () => {
    const event = events.prepareForCreate(
      { metadata: { name: 'e', namespace: 'default' }, involvedObject: { kind: 'Node', name: 'kw-1' }, message: 'm' },
      { nowMs },
    );
    expect(buildTable(eventsV1, [event], { nowMs, includeObject: 'Object' }).rows[0]?.object).toMatchObject({
      apiVersion: 'events.k8s.io/v1',
      note: 'm',
      regarding: { kind: 'Node', name: 'kw-1' },
    });
  });

  it('know the three values of includeObject', () => {
    expect(parseIncludeObject(null)).toBe('Metadata');
    expect(parseIncludeObject('Object')).toBe('Object');
    expect(parseIncludeObject('All')).toBeUndefined();
  });

  it('can be metadata only', () => {
    expect(partialMetadataList([lease], { resourceVersion: '9' })).toMatchObject({
      kind: 'PartialObjectMetadataList',
      items: [{ kind: 'PartialObjectMetadata', metadata: { name: 'kw-1' } }],
    });
  });
});

const KUBECTL_GET =
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json';

describe('the form of an answer', () => {
  it('is a table for kubectl get', () => {
    expect(answerForm(KUBECTL_GET)).toEqual({ kind: 'table', version: 'v1' });
  });

  it.each([
    undefined,
    '',
    '*/*',
    'application/json',
    'application/vnd.kubernetes.protobuf',
    'application/vnd.kubernetes.protobuf,application/json',
    'application/json;as=Table;v=v9;g=meta.k8s.io',
    'text/html',
  ])('is the object for %j', (accept) => {
    expect(answerForm(accept)).toEqual({ kind: 'object' });
  });

  it('is metadata only for metadata clients', () => {
    expect(
      answerForm(
        'application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json',
      ),
    ).toEqual({ kind: 'partialMetadata', version: 'v1' });
  });

  it('follows the qualities', () => {
    expect(answerForm('application/json;q=0.5,application/json;as=Table;v=v1beta1;g=meta.k8s.io')).toEqual({
      kind: 'table',
      version: 'v1beta1',
    });
  });
});

it.each([
  ['a text that fits', 'x'.repeat(6_000_000), 200],
  ['a text of quotes, which Lambda counts twice', '"'.repeat(3_200_000), 413],
  ['bytes, which Lambda counts as base64', new Uint8Array(4_700_000), 413],
  ['bytes that fit', new Uint8Array(4_600_000), 200],
])('a function answers %s', (_what, body, code) => {
  const response = permittedResponse({ status: 200, headers: {}, body });
  expect(response.status).toBe(code);
  if (code === 413) expect(response.body).toContain('accept gzip, or ask for less');
});
