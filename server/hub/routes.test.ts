import { expect, it } from 'vitest';
import { GRANTS } from '../watches/access-withdrawals.ts';
import { routeOf } from './routes.ts';

const HELD = new Set([...GRANTS, 'pods', 'events', 'nodes', 'deployments', 'serviceaccounts']);

function route(line: string, held: ReadonlySet<string> = HELD, headers: Readonly<Record<string, string>> = {}): string {
  const [method = '', target = ''] = line.split(' ');
  const { pathname: path, searchParams: query } = new URL(target, 'https://hub');
  const found = routeOf({ method, path, query, headers }, (resource) => held.has(resource));
  if (found.kind === 'own') return found.what;
  return found.kind === 'pass' && found.changes !== undefined ? `pass, changes ${found.changes}` : found.kind;
}

it.each([
  ['GET /readyz', 'health'],
  ['GET /hub/metrics', 'metrics'],
  ['GET /metrics', 'pass'],
  ['GET /version', 'copy'],
  ['GET /api', 'copy'],
  ['GET /apis/apps/v1', 'copy'],
  ['GET /openapi/v3/apis/apps/v1', 'copy'],
  ['POST /version', 'pass'],
  ['GET /openid/v1/jwks', 'pass'],
  ['GET /api/v1/pods', 'copy'],
  ['HEAD /api/v1/pods', 'copy'],
  ['GET /api/v1/namespaces/a/pods/b', 'copy'],
  ['GET /api/v1/namespaces/a/pods/b/status', 'copy'],
  ['GET /api/v1/pods?watch=1', 'copy'],
  ['GET /api/v1/namespaces/a/pods/b/log', 'pass'],
  ['GET /api/v1/namespaces/a/pods/b/exec', 'pass'],
  ['POST /api/v1/namespaces/a/pods/b/exec', 'pass'],
  ['GET /apis/apps/v1/namespaces/a/deployments/b/scale', 'pass'],
  ['PUT /apis/apps/v1/namespaces/a/deployments/b/scale', 'pass, changes deployments'],
  ['POST /api/v1/namespaces/a/pods', 'pass, changes pods'],
  ['POST /api/v1/namespaces/a/pods/b/eviction', 'pass, changes pods'],
  ['PATCH /api/v1/nodes/n/status', 'pass, changes nodes'],
  ['DELETE /api/v1/namespaces/a/pods', 'pass, changes pods'],
  ['OPTIONS /api/v1/pods', 'pass, changes pods'],
  ['POST /api/v1/namespaces/a/serviceaccounts/b/token', 'pass'],
  // Events of both groups are the same objects.
  ['GET /apis/events.k8s.io/v1/events', 'copy'],
  // Other objects with the same name.
  ['GET /apis/metrics.k8s.io/v1beta1/nodes', 'pass'],
  ['GET /api/v1/secrets', 'pass'],
  ['PATCH /api/v1/namespaces/a/secrets/b', 'pass'],
  ['GET /apis/coordination.k8s.io/v1/leases', 'pass'],
  ['GET /apis/example.com/v1/things', 'pass'],
  ['POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews', 'pass'],
  ['GET /api/v1/namespaces/a%2Fb/pods', 'copy'],
])('%s: %s', (line, expected) => expect(route(line)).toBe(expected));

it('answers nothing but health from the copy while it cannot authorize', () => {
  const withoutRoles = new Set([...HELD].filter((resource) => resource !== 'rolebindings'));
  expect(route('GET /api/v1/pods', withoutRoles)).toBe('pass');
  expect(route('GET /api', withoutRoles)).toBe('pass');
  expect(route('GET /livez', withoutRoles)).toBe('health');
});

it('answers a watch by WebSocket, and passes every other protocol', () => {
  expect(route('GET /api/v1/pods?watch=1', HELD, { upgrade: 'websocket' })).toBe('copy');
  expect(route('GET /api/v1/pods?watch=1', HELD, { upgrade: 'spdy/3.1' })).toBe('pass');
});
