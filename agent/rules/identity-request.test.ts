import { expect, it } from 'vitest';
import type { KubeAnswer } from '../ports/kube-api.ts';
import { enrolRequest, identityIn, identityRequest } from './identity-request.ts';

const PATH = '/apis/nodekeeper.dev/v1alpha1/nodeidentities';
const answered = (status: number, spec: unknown): KubeAnswer =>
  ({ kind: 'answered', status, body: { metadata: {}, spec } }) as KubeAnswer;

it('an identity is asked for by its name, and created with the key of the machine', () => {
  expect(identityRequest('a/b')).toEqual({ method: 'GET', path: `${PATH}/a%2Fb` });
  const publicKey = { kty: 'OKP', crv: 'Ed25519', x: 'x' } as const;
  expect(enrolRequest('n1', publicKey)).toEqual({
    method: 'POST',
    path: PATH,
    body: {
      apiVersion: 'nodekeeper.dev/v1alpha1',
      kind: 'NodeIdentity',
      metadata: { name: 'n1' },
      spec: { publicKey },
    },
  });
});

it('an identity has the keys that can be read, and the labels of the Node', () => {
  const key = { keyId: 'k', addedAt: '2026-01-01T00:00:00Z' };
  const keys = [key, { keyId: 'l' }, { ...key, keyId: 7 }, { keyId: 'm', addedAt: 'soon' }, 'x'];
  const read = { keys: [{ keyId: 'k', addedAtMs: Date.UTC(2026, 0, 1) }], nodeLabels: { site: 'north' } };
  for (const status of [200, 201])
    expect(identityIn(answered(status, { keys, nodeLabels: { site: 'north' } }))).toEqual(read);
  expect(identityIn(answered(200, {}))).toEqual({ keys: [], nodeLabels: {} });
});

it('other answers have none', () => {
  for (const answer of [answered(404, {}), answered(200, undefined), { kind: 'failed', cause: 'x' } as KubeAnswer])
    expect(identityIn(answer)).toBeUndefined();
});
