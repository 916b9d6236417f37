import { describe, expect, it } from 'vitest';
import { compileRoutes } from './routes.ts';

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}';

function matcher(...routeKeys: string[]) {
  const find = compileRoutes(routeKeys.map((routeKey) => ({ routeKey, target: routeKey })));
  return (method: string, path: string) => {
    const found = find(method, path);
    return found === undefined ? undefined : [found.route.routeKey, found.pathParameters];
  };
}

describe('routes of an HTTP API', () => {
  const find = matcher(
    '$default',
    `PUT ${LEASE}`,
    `PATCH ${LEASE}`,
    'ANY /api/{proxy+}',
    'GET /api/v1/nodes/{name}',
    'GET /api/v1/nodes/self',
  );

  it('routes a beat by method and path', () => {
    const path = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/edge-1';
    expect(find('PUT', path)).toEqual([`PUT ${LEASE}`, { name: 'edge-1' }]);
    expect(find('PATCH', path)).toEqual([`PATCH ${LEASE}`, { name: 'edge-1' }]);
    expect(find('GET', path)).toEqual(['$default', undefined]);
    expect(find('PUT', `${path}/status`)).toEqual(['$default', undefined]);
  });

  it('prefers a full match to a variable, and a variable to a greedy one', () => {
    expect(find('GET', '/api/v1/nodes/self')).toEqual(['GET /api/v1/nodes/self', undefined]);
    expect(find('GET', '/api/v1/nodes/n1')).toEqual(['GET /api/v1/nodes/{name}', { name: 'n1' }]);
    expect(find('PUT', '/api/v1/nodes/n1')).toEqual(['ANY /api/{proxy+}', { proxy: 'v1/nodes/n1' }]);
    expect(find('GET', '/api/v1/pods/a/log')).toEqual(['ANY /api/{proxy+}', { proxy: 'v1/pods/a/log' }]);
  });

  it('falls back to $default, and to nothing without one', () => {
    expect(find('GET', '/version')).toEqual(['$default', undefined]);
    expect(matcher('GET /a')('GET', '/b')).toBeUndefined();
    expect(matcher('GET /a')('POST', '/a')).toBeUndefined();
  });

  it('prefers a named method to ANY', () => {
    const both = matcher('ANY /a/{x}', 'GET /a/{x}');
    expect(both('GET', '/a/1')).toEqual(['GET /a/{x}', { x: '1' }]);
    expect(both('DELETE', '/a/1')).toEqual(['ANY /a/{x}', { x: '1' }]);
  });

  it('leaves the bare prefix to others than the greedy route', () => {
    expect(find('GET', '/api')).toEqual(['$default', undefined]);
    expect(find('GET', '/api/')).toEqual(['$default', undefined]);
    expect(matcher('ANY /{proxy+}', 'GET /')('GET', '/')).toEqual(['GET /', undefined]);
  });

  it('needs a value for a variable', () => {
    expect(matcher('GET /a/{x}')('GET', '/a/')).toBeUndefined();
  });
});
