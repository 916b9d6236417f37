import { describe, expect, it } from 'vitest';
import { causeText } from '../../kubernetes/status.ts';
import { namespaces } from './serve.ts';

const created = namespaces.prepareForCreate({ metadata: { name: 'kw-team' } }, { nowMs: 0 });

describe('namespaces', () => {
  it('start active, held by the finalizer of the API, and labelled with their name', () => {
    expect(created).toEqual({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'kw-team', labels: { 'kubernetes.io/metadata.name': 'kw-team' } },
      spec: { finalizers: ['kubernetes'] },
      status: { phase: 'Active' },
    });
  });

  it('are named by a label, not a subdomain', () => {
    expect(
      namespaces.validate({ metadata: { name: 'a.b' } }, { operation: 'create', subresource: '' }).map(causeText),
    ).toEqual([expect.stringContaining('metadata.name: Invalid value: "a.b": a lowercase RFC 1123 label')]);
  });

  it('change their finalizers only through finalize', () => {
    const next = { ...created, spec: {} };
    expect(namespaces.prepareForUpdate(next, created, { nowMs: 0, subresource: '' }).spec).toEqual(created.spec);
    expect(namespaces.prepareForUpdate(next, created, { nowMs: 0, subresource: 'finalize' }).spec).toEqual({});
  });

  it('terminate only once they are being deleted', () => {
    const next = { ...created, status: { phase: 'Terminating' } };
    const validate = (old: typeof created) =>
      namespaces
        .validate({ ...next, metadata: old.metadata }, { operation: 'update', subresource: 'status', old })
        .map(causeText);
    expect(validate(created)).toHaveLength(1);
    expect(validate({ ...created, metadata: { ...created.metadata, deletionTimestamp: 't' } })).toEqual([]);
  });

  it('show their phase', () => {
    expect(namespaces.row(created, 0)).toEqual(['kw-team', 'Active', '<unknown>']);
  });
});
