import { describe, expect, it } from 'vitest';
import { upstream } from '../../kinds/upstream.ts';
import { decodeStrict } from '../decode.ts';
import type { JsonObject } from '../json.ts';
import { fromFieldsV1, pathsOf, toFieldsV1 } from './field-set.ts';
import {
  fieldManagerFault,
  managerFromUserAgent,
  readManagedFields,
  trackUpdate,
  UPDATE_MANAGERS_MAX,
} from './managed-fields.ts';

const lease = upstream.struct('coordination/v1.Lease');
const node = upstream.struct('core/v1.Node');

const writer = (manager: string, time = '2026-11-20T12:00:00Z') => ({
  manager,
  apiVersion: 'v1',
  subresource: '',
  time,
});
const nodeOf = (value: JsonObject): JsonObject => decodeStrict(node, value).value;
const withManaged = (object: JsonObject, managedFields: unknown): JsonObject => ({
  ...object,
  metadata: { ...(object['metadata'] as JsonObject), managedFields },
});

describe('trackUpdate', () => {
  const bare = nodeOf({
    metadata: { name: 'n', labels: { a: '1' } },
    spec: { taints: [{ key: 'k', effect: 'NoSchedule' }] },
  });

  it('assigns a creator the fields it set, and none that are always present', () => {
    expect(trackUpdate({ schema: node, live: undefined, next: bare, writer: writer('kubectl-create') })).toEqual([
      {
        manager: 'kubectl-create',
        operation: 'Update',
        apiVersion: 'v1',
        time: '2026-11-20T12:00:00Z',
        fieldsType: 'FieldsV1',
        fieldsV1: { 'f:metadata': { 'f:labels': { 'f:a': {} } }, 'f:spec': { 'f:taints': {} } },
      },
    ]);
  });

  it('moves a changed field to who changed it, and drops a removed one', () => {
    const created = trackUpdate({ schema: node, live: undefined, next: bare, writer: writer('one') });
    const live = withManaged(bare, created);
    const next = withManaged(nodeOf({ metadata: { name: 'n', labels: { a: '2' } } }), created);
    const after = readManagedFields(trackUpdate({ schema: node, live, next, writer: writer('two') })) ?? [];
    expect(after.map(({ manager, fields }) => [manager, pathsOf(fields)])).toEqual([['two', ['.metadata.labels.a']]]);
  });

  it('writes the entries of one manager and second in one order, whichever of its writes was first', () => {
    const written = (...subresources: string[]): unknown[] => {
      let live: JsonObject | undefined;
      for (const subresource of subresources) {
        const labels = { ...(live?.['metadata'] as { labels?: JsonObject })?.labels, [`of-${subresource}`]: '1' };
        const next = nodeOf({ metadata: { name: 'n', labels } });
        const one = { ...writer('one'), subresource };
        live = withManaged(next, trackUpdate({ schema: node, live, next, writer: one }));
      }
      return readManagedFields((live!['metadata'] as JsonObject)['managedFields'])!.map((each) => each.subresource);
    };
    expect(written('', 'scale')).toEqual(['', 'scale']);
    expect(written('scale', '')).toEqual(['', 'scale']);
  });

  it('keeps entries as they are, time included, when nothing changed', () => {
    const created = trackUpdate({ schema: node, live: undefined, next: bare, writer: writer('one') });
    const live = withManaged(bare, created);
    expect(trackUpdate({ schema: node, live, next: live, writer: writer('two', '2026-11-20T13:00:00Z') })).toEqual(
      created,
    );
    expect(trackUpdate({ schema: node, live, next: bare, writer: writer('one', '2026-11-20T13:00:00Z') })).toEqual(
      created,
    );
  });

  it('keeps one entry a subresource', () => {
    const created = trackUpdate({ schema: node, live: undefined, next: bare, writer: writer('kubelet') });
    const next = withManaged({ ...bare, status: { phase: 'Running' } }, created);
    const after = trackUpdate({
      schema: node,
      live: withManaged(bare, created),
      next,
      writer: { ...writer('kubelet'), subresource: 'status' },
      ignored: [['spec'], ['metadata']],
    });
    expect(after).toMatchObject([
      { manager: 'kubelet', fieldsV1: { 'f:spec': {} } },
      { manager: 'kubelet', subresource: 'status', fieldsV1: { 'f:status': { 'f:phase': {} } } },
    ]);
  });

  it('drops all of them on a reset, and copies them from the stored object when a client left them out', () => {
    const created = trackUpdate({ schema: node, live: undefined, next: bare, writer: writer('one') });
    const live = withManaged(bare, created);
    const update = (managedFields: unknown) =>
      trackUpdate({ schema: node, live, next: withManaged(bare, managedFields), writer: writer('two') });
    expect(update([{}])).toEqual([]);
    expect(update([])).toEqual(created);
    expect(update(undefined)).toEqual(created);
    expect(update([{ operation: 'Nonsense' }])).toEqual(created);
    expect(update([{}, {}])).toEqual(created);
  });

  it('keeps none for an update of an object that has none', () => {
    const labelled = { ...bare, metadata: { labels: { a: '1' } } };
    expect(trackUpdate({ schema: node, live: bare, next: labelled, writer: writer('one') })).toEqual([]);
    expect(trackUpdate({ schema: node, live: undefined, next: labelled, writer: writer('one') })).toHaveLength(1);
  });

  it('ignores those that a client sends to a subresource', () => {
    const created = trackUpdate({ schema: node, live: undefined, next: bare, writer: writer('one') });
    const live = withManaged(bare, created);
    const status = { ...writer('two'), subresource: 'status' };
    for (const sent of [[{}], [{ ...created[0], manager: 'forged' }]]) {
      expect(trackUpdate({ schema: node, live, next: withManaged(bare, sent), writer: status })).toEqual(created);
    }
  });

  it('accepts managed fields that a client edited, as kubectl does to migrate from client-side apply', () => {
    const [entry] = trackUpdate({
      schema: node,
      live: undefined,
      next: bare,
      writer: writer('kubectl-client-side-apply'),
    });
    const handedOver = [{ ...entry, manager: 'kubectl', operation: 'Apply' }];
    const live = withManaged(bare, [entry]);
    expect(trackUpdate({ schema: node, live, next: withManaged(bare, handedOver), writer: writer('kubectl') })).toEqual(
      handedOver,
    );
  });

  it('puts the oldest entries together once there are too many', () => {
    let live: JsonObject | undefined;
    for (let index = 0; index < UPDATE_MANAGERS_MAX + 5; index += 1) {
      const metadata = (live ?? bare)['metadata'] as JsonObject;
      const labels = { ...(metadata['labels'] as JsonObject), [`l${index}`]: '1' };
      const next = { ...bare, metadata: { ...metadata, labels } };
      const time = `2026-11-20T12:00:${String(index).padStart(2, '0')}Z`;
      live = withManaged(next, trackUpdate({ schema: node, live, next, writer: writer(`m${index}`, time) }));
    }
    const entries = readManagedFields((live!['metadata'] as JsonObject)['managedFields']) ?? [];
    expect(entries).toHaveLength(UPDATE_MANAGERS_MAX);
    expect(entries[0]).toMatchObject({ manager: 'ancient-changes' });
    expect(entries.flatMap(({ fields }) => pathsOf(fields))).toHaveLength(UPDATE_MANAGERS_MAX + 7);
  });

  it('stays small on a lease that is renewed', () => {
    const spec = { holderIdentity: 'n', leaseDurationSeconds: 40, renewTime: '2026-11-20T12:00:00.000000Z' };
    const next = decodeStrict(lease, { metadata: { name: 'n', namespace: 'kube-node-lease' }, spec }).value;
    const managed = trackUpdate({ schema: lease, live: undefined, next, writer: writer('nodekeeper-agent') });
    expect(JSON.stringify(managed).length).toBeLessThan(250);
  });
});

describe('FieldsV1', () => {
  it('reads what it writes', () => {
    const fields = {
      'f:metadata': { 'f:finalizers': { 'v:"a"': {} }, 'f:labels': { '.': {}, 'f:x/y.z': {} } },
      'f:status': { 'f:conditions': { 'k:{"type":"Ready"}': { '.': {}, 'f:status': {} } } },
    };
    const set = fromFieldsV1(fields);
    expect(set && toFieldsV1(set)).toEqual(fields);
    expect(set && pathsOf(set)).toEqual([
      '.metadata.finalizers[="a"]',
      '.metadata.labels',
      '.metadata.labels.x/y.z',
      '.status.conditions[type="Ready"]',
      '.status.conditions[type="Ready"].status',
    ]);
  });

  it.each([
    [null],
    ['x'],
    [[]],
    [{ 'f:a': 1 }],
    [{ 'x:a': {} }],
    [{ 'k:nonsense': {} }],
    [{ 'k:[]': {} }],
    [{ 'v:': {} }],
  ])('refuses %j', (fields) => {
    expect(fromFieldsV1(fields)).toBeUndefined();
  });
});

describe('field manager', () => {
  it('comes from the program that asks, if it is not named', () => {
    expect(managerFromUserAgent('kubectl/v1.32.4 (linux/amd64) kubernetes/59526cd')).toBe('kubectl');
    expect(managerFromUserAgent('')).toBe('unknown');
    expect(managerFromUserAgent('x'.repeat(200))).toHaveLength(128);
  });

  it('has a bounded, printable name', () => {
    expect(fieldManagerFault('kubectl')).toBeUndefined();
    expect(fieldManagerFault('x'.repeat(129))).toBe('may not be more than 128 bytes');
    expect(fieldManagerFault('a\u0007')).toBe('should only contain printable characters');
  });
});
