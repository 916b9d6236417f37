import { expect, it } from 'vitest';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { isCriticalPod, isMirrorPod, isStaticPod, priorityOf } from './critical-pod.ts';

const pod = (annotations?: Record<string, string>, priority?: unknown): KubeObject => ({
  metadata: { name: 'p', ...(annotations && { annotations }) },
  spec: { priority },
});
const source = (text: string) => pod({ 'kubernetes.io/config.source': text });
const mirror = pod({ 'kubernetes.io/config.mirror': '' });

it('a pod is static unless it comes from the API, and a mirror pod represents one', () => {
  expect([source('file'), source('http'), source('api'), pod(), pod({})].map(isStaticPod)).toEqual([
    ...[true, true, false, false, false],
  ]);
  expect([mirror, pod({}), pod(), source('file')].map(isMirrorPod)).toEqual([true, false, false, false]);
});

it('a pod without a priority has 0', () => {
  expect([pod({}, 7), pod({}, -7), pod({}, undefined), pod({}, '7'), { metadata: {} }].map(priorityOf)).toEqual([
    ...[7, -7, 0, 0, 0],
  ]);
});

it('static pods, mirror pods and those of the system’s priority are critical', () => {
  expect([source('file'), mirror, pod({}, 2_000_000_000), pod({}, 2_000_001_000)].map(isCriticalPod)).toEqual([
    ...[true, true, true, true],
  ]);
  expect([source('api'), pod({}, 1_999_999_999), pod()].map(isCriticalPod)).toEqual([false, false, false]);
});
