import { describe, expect, it } from 'vitest';
import type { KubePod } from '../../shared/kinds/types.ts';
import { linuxOnlyField, mountPathBelow } from './windows-pod.ts';

const pod = (spec: KubePod['spec']): KubePod => ({ metadata: { name: 'p' }, spec: { ...spec, containers: [] } });

describe('a pod on Windows', () => {
  it.each([
    ['spec.hostPID', pod({ hostPID: false }), {}],
    ['spec.securityContext.fsGroup', pod({ securityContext: { fsGroup: 5 } }), {}],
    ['securityContext.privileged of container web', pod({}), { name: 'web', securityContext: { privileged: false } }],
    [undefined, pod({ hostNetwork: true, securityContext: { runAsNonRoot: true } }), { name: 'web' }],
  ])('has %s for Linux alone', (expected, given, container) => {
    expect(linuxOnlyField(given, container)).toBe(expected);
  });

  it.each([
    ['/var/run/secrets', 'var\\run\\secrets'],
    ['C:\\data\\web', 'data\\web'],
    ['d:/data/../../x', 'data\\x'],
    ['\\', ''],
  ])('has the volume of %s below its directory', (mountPath, expected) => {
    expect(mountPathBelow(mountPath)).toBe(expected);
  });
});
