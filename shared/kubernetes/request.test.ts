import { describe, expect, it } from 'vitest';
import { isAskedFor, parsePath, verbOf } from './request.ts';

const target = (path: string) => {
  const parsed = parsePath(path);
  if (parsed.kind !== 'resource') throw new Error(`not a resource path: ${path}`);
  return parsed.target;
};

describe('parsePath', () => {
  it('reads cluster-scoped, namespaced and sub-resource paths', () => {
    expect(target('/api/v1/nodes')).toEqual({
      group: '',
      version: 'v1',
      resource: 'nodes',
      namespace: '',
      name: '',
      subresource: '',
    });
    expect(target('/api/v1/nodes/a.b/status')).toMatchObject({ resource: 'nodes', name: 'a.b', subresource: 'status' });
    expect(target('/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1')).toEqual({
      group: 'coordination.k8s.io',
      version: 'v1',
      resource: 'leases',
      namespace: 'kube-node-lease',
      name: 'n1',
      subresource: '',
    });
    expect(target('/api/v1/namespaces/default/pods/p/eviction')).toMatchObject({
      resource: 'pods',
      namespace: 'default',
      name: 'p',
      subresource: 'eviction',
    });
  });

  it('distinguishes a namespace from the objects inside it', () => {
    expect(target('/api/v1/namespaces/default')).toMatchObject({ resource: 'namespaces', name: 'default' });
    expect(target('/api/v1/namespaces/default/status')).toMatchObject({
      resource: 'namespaces',
      name: 'default',
      subresource: 'status',
    });
    expect(target('/api/v1/namespaces/status/pods')).toMatchObject({ resource: 'pods', namespace: 'status' });
  });

  it('leaves discovery and unknown roots to be matched by their text', () => {
    for (const path of ['/', '/version', '/api', '/apis', '/api/v1', '/apis/policy/v1', '/openapi/v3', '/api/']) {
      expect(parsePath(path).kind, path).toBe('other');
    }
  });

  it('refuses dot segments, escaped slashes and broken escapes, and never folds double slashes', () => {
    for (const path of ['/api/v1/nodes/..', '/api/v1/nodes/%2e%2e', '/api/v1/nodes/a%2Fstatus', '/api/v1/nodes/%zz']) {
      expect(parsePath(path).kind, path).toBe('malformed');
    }
    expect(parsePath('/api/v1//nodes').kind).toBe('other');
  });
});

describe('a boolean option', () => {
  it.each(['', 'true', 'True', 'TRUE', '1', 'yes', 'no', 'off', ' false', '00'])('is true as %j', (value) => {
    expect(isAskedFor(new URLSearchParams({ option: value }), 'option')).toBe(true);
  });

  it.each(['0', 'false', 'False', 'FALSE', 'fAlSe'])('is false as %j', (value) => {
    expect(isAskedFor(new URLSearchParams({ option: value }), 'option')).toBe(false);
  });

  it('is false when absent, and true without a value', () => {
    expect(isAskedFor(new URLSearchParams(), 'option')).toBe(false);
    expect(isAskedFor(new URLSearchParams('option'), 'option')).toBe(true);
  });

  it('uses the first value', () => {
    expect(isAskedFor(new URLSearchParams('option=false&option=true'), 'option')).toBe(false);
  });
});

describe('verbOf', () => {
  it('names the verb by method, name and watch', () => {
    const nodes = target('/api/v1/nodes');
    const one = target('/api/v1/nodes/a');
    expect(verbOf('GET', nodes, new URLSearchParams())).toBe('list');
    expect(verbOf('GET', nodes, new URLSearchParams('watch=true'))).toBe('watch');
    expect(verbOf('GET', nodes, new URLSearchParams('watch=True'))).toBe('watch');
    expect(verbOf('GET', nodes, new URLSearchParams('watch=False'))).toBe('list');
    expect(verbOf('GET', one, new URLSearchParams('watch=True'))).toBe('get');
    expect(verbOf('GET', one, new URLSearchParams())).toBe('get');
    expect(verbOf('DELETE', nodes, new URLSearchParams())).toBe('deletecollection');
    expect(verbOf('DELETE', one, new URLSearchParams())).toBe('delete');
    expect(verbOf('TRACE', one, new URLSearchParams())).toBeUndefined();
  });
});
