import { expect, it } from 'vitest';
import type { KubePod } from '../../shared/kinds/types.ts';
import { parseSecrets, parseState, rememberedPod, statesOf, stateText } from './remembered-state.ts';

const OWNER = { nodeName: 'edge-1', clusterId: 'c' };
const pod: KubePod = {
  metadata: { uid: 'u', name: 'web', namespace: 'default', resourceVersion: '7', generation: 2, labels: { a: 'b' } },
  spec: { containers: [{ name: 'main' }] },
  status: { phase: 'Running' },
};
const state = { pods: [rememberedPod(pod)], configMaps: [], hostIp: '192.0.2.7' };
const text = stateText(OWNER, state, 'c2VhbGVk');

it('is read as it was written', () => {
  expect(parseState(text, OWNER)).toEqual({ kind: 'usable', state, sealed: 'c2VhbGVk' });
});

it('has no part of a pod that a report of its status changes', () => {
  const reported: KubePod = {
    ...pod,
    metadata: { ...pod.metadata, resourceVersion: '8' },
    status: { phase: 'Failed' },
  };
  expect(rememberedPod(reported)).toEqual(rememberedPod(pod));
});

it('has the start of a pod with a deadline, which passes also while the machine has no power', () => {
  const status = { phase: 'Running', startTime: '2026-01-01T00:00:00Z' } as const;
  expect(rememberedPod({ ...pod, status })).not.toHaveProperty('status');
  const limited = { ...pod, spec: { ...pod.spec!, activeDeadlineSeconds: 60 } };
  expect(rememberedPod(limited)).not.toHaveProperty('status');
  expect(rememberedPod({ ...limited, status }).status).toEqual({ startTime: status.startTime });
});

it.each([
  ['another node', stateText({ ...OWNER, nodeName: 'edge-2' }, state, undefined), 'its nodeName is "edge-2"'],
  ['another cluster', stateText({ ...OWNER, clusterId: 'd' }, state, undefined), 'its clusterId is "d"'],
  ['another layout', text.replace('"layout":1', '"layout":2'), 'its layout is 2, not 1'],
  ['another program', 'hello', 'its layout is undefined, not 1'],
])('is refused of %s', (_, other, why) => {
  expect(parseState(other, OWNER)).toEqual({ kind: 'refused', why });
});

it('is the newest one that can be used, with why newer ones cannot', () => {
  const read = (each: string) => ({ kind: 'read', text: each }) as never;
  const lost = { kind: 'failed', why: 'EIO' } as never;
  const [other, plain] = [stateText({ ...OWNER, nodeName: 'edge-2' }, state, 'x'), stateText(OWNER, state, undefined)];
  expect(statesOf([lost, read(other), read(plain), lost], OWNER)).toEqual({
    newest: { kind: 'usable', state, sealed: undefined },
    refusals: ['EIO', 'its nodeName is "edge-2"'],
    hasSecrets: false,
  });
  expect(statesOf([read(plain), read(text)], OWNER)).toMatchObject({
    ...{ newest: { sealed: undefined }, refusals: [], hasSecrets: true },
  });
  expect(statesOf([lost], OWNER)).toEqual({ newest: undefined, refusals: ['EIO'], hasSecrets: false });
  expect(statesOf([], OWNER)).toEqual({ newest: undefined, refusals: [], hasSecrets: false });
});

it('has Secrets and tokens, and nothing of another text', () => {
  const secrets = { secrets: [{ name: 's' }], tokens: [{ podUid: 'u' }] };
  expect(parseSecrets(JSON.stringify(secrets))).toEqual(secrets);
  for (const other of ['', '{', 'null', '[]', '{"secrets":7}'])
    expect(parseSecrets(other), other).toEqual({ secrets: [], tokens: [] });
});
