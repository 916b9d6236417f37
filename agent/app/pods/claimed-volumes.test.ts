import { expect, it } from 'vitest';
import type { Volume } from '../../../shared/kinds/types.ts';
import { answered, refused, scriptedApi, timedOut } from '../../../test/support/agent-api.ts';
import type { KubeAnswer, KubeApi } from '../../ports/kube-api.ts';
import { claimedVolume, isClaimed } from './claimed-volumes.ts';

const pod = { metadata: { namespace: 'shop', name: 'web-0', uid: 'pod-uid' } };
const NAMED: Volume = { name: 'data', persistentVolumeClaim: { claimName: 'data' } };
const OWN: Volume = { name: 'data', ephemeral: {} };
const CLAIMS = '/api/v1/namespaces/shop/persistentvolumeclaims';
const bound = { 'pv.kubernetes.io/bind-completed': 'yes' };

const claim = (more: { spec?: object; annotations?: object; ownerReferences?: object[]; name?: string } = {}) =>
  answered(200, {
    metadata: {
      namespace: 'shop',
      name: more.name ?? 'data',
      uid: 'claim-uid',
      annotations: more.annotations ?? bound,
      ownerReferences: more.ownerReferences,
    },
    spec: more.spec ?? { volumeName: 'pv/1' },
  });
const ownClaim = (...ownerReferences: object[]) => claim({ name: 'web-0-data', ownerReferences });
const claimRef = { namespace: 'shop', name: 'data', uid: 'claim-uid' };
const volume = (spec: object) => answered(200, { metadata: { name: 'pv/1' }, spec: { claimRef, ...spec } });

async function found(of: Volume, claimAnswer: KubeAnswer, volumeAnswer?: KubeAnswer) {
  const api = scriptedApi(({ path }) => (path.startsWith(CLAIMS) ? claimAnswer : volumeAnswer));
  return {
    result: await claimedVolume(api, pod, of),
    paths: api.requests.map(({ method, path }) => `${method} ${path}`),
  };
}

it.each([
  ['local', { local: { path: '/srv/1' }, hostPath: { path: '/other' } }, '/srv/1'],
  ['hostPath', { hostPath: { path: '/srv/2' }, volumeMode: 'Filesystem' }, '/srv/2'],
])('the directory is that of the volume of the claim: %s', async (_, spec, path) => {
  expect(await found(NAMED, claim(), volume(spec))).toEqual({
    result: { kind: 'directory', path },
    paths: [`GET ${CLAIMS}/data`, 'GET /api/v1/persistentvolumes/pv%2F1'],
  });
});

it('the claim of an ephemeral volume is named after the pod, and the pod controls it', async () => {
  const local = volume({ local: { path: '/srv/1' }, claimRef: { ...claimRef, name: 'web-0-data' } });
  const owners = [{ uid: 'other' }, { uid: 'pod-uid', controller: true }];
  expect(await found(OWN, ownClaim(...owners), local)).toEqual({
    result: { kind: 'directory', path: '/srv/1' },
    paths: [`GET ${CLAIMS}/web-0-data`, 'GET /api/v1/persistentvolumes/pv%2F1'],
  });
  const message = 'PVC web-0-data was not created for pod web-0 (pod is not owner)';
  for (const answer of [
    ownClaim(),
    claim({ name: 'web-0-data' }),
    ownClaim({ uid: 'pod-uid', controller: false }),
    ownClaim({ uid: 'other', controller: true }),
  ]) {
    expect((await found(OWN, answer)).result).toEqual({ kind: 'failed', message });
  }
});

it.each([
  ['has no volume', claim({ spec: {} })],
  ['has no spec', answered(200, { metadata: { name: 'data', annotations: bound } })],
  ['is not bound by the binder yet', claim({ annotations: {} })],
])('a claim that %s is not bound', async (_, answer) => {
  expect(await found(NAMED, answer)).toEqual({
    result: { kind: 'failed', message: `can't use PVC "data": PVC is not bound` },
    paths: [`GET ${CLAIMS}/data`],
  });
});

it.each([
  ['is of another claim', { local: { path: '/srv' }, claimRef: { ...claimRef, uid: 'x' } }, /bound to another claim/],
  ['is a block device', { local: { path: '/dev/x' }, volumeMode: 'Block' }, /has no directory of this node/],
  ['is of a driver', { csi: { driver: 'x' } }, /has no directory of this node/],
])('a volume that %s cannot be used', async (_, spec, message) => {
  const { result } = await found(NAMED, claim(), volume(spec));
  expect(result).toEqual({ kind: 'failed', message: expect.stringMatching(message) });
});

it.each([
  [404, 'failed'],
  [403, 'failed'],
  [500, 'unknown'],
] as const)('an answer %d fails for good, or says nothing about the volume: %s', async (status, kind) => {
  const answer = refused(status, 'Reason');
  expect((await found(NAMED, answer)).result).toEqual({ kind, message: `${CLAIMS}/data: ${status}` });
  const { result } = await found(NAMED, claim(), answer);
  expect(result).toEqual({ kind, message: `/api/v1/persistentvolumes/pv%2F1: ${status}` });
});

it('no answer, and an answer without an object, say nothing about the volume', async () => {
  for (const answer of [timedOut, answered(200, 'a page of a gateway')]) {
    expect((await found(NAMED, answer)).result).toMatchObject({ kind: 'unknown' });
  }
});

it('stops with the signal', async () => {
  const signals: (AbortSignal | undefined)[] = [];
  const api: KubeApi = {
    async send({ signal }) {
      signals.push(signal);
      return timedOut;
    },
    reconnect() {},
  };
  const { signal } = new AbortController();
  await claimedVolume(api, pod, NAMED, signal);
  expect(signals).toEqual([signal]);
});

it('only claims, named or ephemeral, are claimed', () => {
  expect([NAMED, OWN, { name: 'x', emptyDir: {} }].map(isClaimed)).toEqual([true, true, false]);
});
